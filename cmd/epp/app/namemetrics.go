package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/internal/names"
)

// nameMetrics collects the number of names, by source, and the number of resources not in use.
type nameMetrics struct {
	naming                         *naming
	objectives, models, unaccepted *prometheus.Desc
}

func newNameMetrics(n *naming) *nameMetrics {
	desc := func(name, help, label string) *prometheus.Desc {
		return prometheus.NewDesc("weir_"+name, help, []string{label}, nil)
	}
	return &nameMetrics{
		naming:     n,
		objectives: desc("objectives", "Known objectives, by source.", "source"),
		models:     desc("models", "Known models, by the source of their targets.", "source"),
		unaccepted: desc("name_resources_unaccepted", "Refused resources of the pool that name objectives or models, by kind.", "kind"),
	}
}

// Describe implements prometheus.Collector.
func (m *nameMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.objectives
	out <- m.models
	out <- m.unaccepted
}

// Collect implements prometheus.Collector.
func (m *nameMetrics) Collect(out chan<- prometheus.Metric) {
	in := m.naming.names.Load()
	objectives := map[string]int{names.KindFile: 0, names.KindObjective: 0}
	for _, o := range in.Objectives {
		objectives[o.From.Kind]++
	}
	models := map[string]int{names.KindFile: 0, names.KindRewrite: 0, names.KindModel: 0}
	for _, model := range in.Models {
		models[model.TargetsFrom.Kind]++
	}
	unaccepted := map[string]int{names.KindObjective: 0, names.KindRewrite: 0, names.KindModel: 0}
	for _, v := range in.Verdicts {
		if !v.Accepted() {
			unaccepted[v.Kind]++
		}
	}
	for desc, counts := range map[*prometheus.Desc]map[string]int{m.objectives: objectives, m.models: models, m.unaccepted: unaccepted} {
		for label, n := range counts {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), label)
		}
	}
}
