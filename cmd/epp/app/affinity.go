package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/prefix"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// cachesOf returns the endpoints of a snapshot in the index's form.
func cachesOf(snapshot *scheduling.Snapshot) []prefix.Endpoint {
	all := make([]prefix.Endpoint, 0, snapshot.Len())
	for i := range snapshot.Len() {
		e := snapshot.At(i)
		all = append(all, prefix.Endpoint{ID: e.ID, Key: e.Key, Ready: e.Ready})
	}
	return all
}

// affinityMetrics are the counters of prompts, and the size of the index, read at a scrape.
type affinityMetrics struct {
	index              *prefix.Index
	tokens, distrusted *prometheus.Desc
	nodes, blocks      *prometheus.Desc
}

func newAffinityMetrics(index *prefix.Index) *affinityMetrics {
	return &affinityMetrics{
		index: index,
		tokens: prometheus.NewDesc("weir_affinity_tokens_total", "Tokens of the prompts placed with scheduling.affinity: "+
			"all (prompt), those expected in the cache of the best endpoint (best) and of the chosen one (chosen), and those that "+
			"engines reported as cached (reported).", []string{"kind"}, nil),
		distrusted: prometheus.NewDesc("weir_affinity_distrusted_total", "Number of times an endpoint's part of the index was cleared and its "+
			"limit halved, because its engine reported less than half of the expected cached tokens.", nil, nil),
		nodes:  prometheus.NewDesc("weir_affinity_nodes", "Blocks of prompts by endpoint that the index knows.", nil, nil),
		blocks: prometheus.NewDesc("weir_affinity_blocks", "Different blocks of prompts that the index knows.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *affinityMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.tokens, m.distrusted, m.nodes, m.blocks} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *affinityMetrics) Collect(to chan<- prometheus.Metric) {
	t, size := m.index.Totals(), m.index.Size()
	for _, kind := range []struct {
		name   string
		tokens int64
	}{{"prompt", t.Prompt}, {"best", t.Best}, {"chosen", t.Chosen}, {"reported", t.Reported}} {
		to <- prometheus.MustNewConstMetric(m.tokens, prometheus.CounterValue, float64(kind.tokens), kind.name)
	}
	to <- prometheus.MustNewConstMetric(m.distrusted, prometheus.CounterValue, float64(t.Distrusted))
	to <- prometheus.MustNewConstMetric(m.nodes, prometheus.GaugeValue, float64(size.Nodes))
	to <- prometheus.MustNewConstMetric(m.blocks, prometheus.GaugeValue, float64(size.Blocks))
}
