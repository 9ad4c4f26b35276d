package app

import (
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/datastore/kvevents"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// followEvents makes the part that follows the engines' KV events, if configured: it sizes the index of prompts, and
// clears it.
func (p *Pool) followEvents(cfg kvevents.Config, log logr.Logger) error {
	if cfg.Port == "" {
		return nil
	}
	blocks := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_kv_events_blocks_total",
		Help: "Blocks that engines' caches have stored and removed, by their KV events.",
	}, []string{"event"})
	clears := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_kv_events_clears_total",
		Help: "Number of times an endpoint's part of the index of prompts was cleared, because its engine has cleared its cache or events are missing.",
	}, []string{"reason"})
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_kv_events_failures_total",
		Help: "Failed connections to engines' publishers of KV events, by reason.",
	}, []string{"reason"})
	stored, removed := blocks.WithLabelValues("stored"), blocks.WithLabelValues("removed")
	cleared, gaps := clears.WithLabelValues("cleared"), clears.WithLabelValues("gap")
	for _, reason := range kvevents.Reasons {
		failures.WithLabelValues(string(reason))
	}
	p.events = kvevents.New(cfg, kvevents.Parts{
		Cleared: func(id scheduling.EndpointID, gap bool) {
			p.index.Clear(id)
			if gap {
				gaps.Inc()
			} else {
				cleared.Inc()
			}
		},
		Sized:  p.index.Resize,
		Blocks: func(s, r int) { stored.Add(float64(s)); removed.Add(float64(r)) },
		Failed: func(r kvevents.Reason) { failures.WithLabelValues(string(r)).Inc() },
	}, log)
	return register(p.registerer, blocks, clears, failures)
}
