package app

import (
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/config"
)

// queue defines the flags of single fields: those of the original proposal, under its names, and minDrain, for replicas
// that get no traffic.
func (f *flags) queue(s *pflag.FlagSet) {
	q, c := &f.document.FairRequestQueue, &f.document.RequestQueueController
	s.Int64Var(&q.TotalCapacity, "total-capacity", q.TotalCapacity, "most `requests` queued at a time, over all flows")
	s.Int64Var(&q.FlowCapacity, "flow-capacity", q.FlowCapacity, "most `requests` queued at a time in one flow")
	s.Var(&q.QueueTTL, "queue-ttl", "longest time in the queue, at most 1h")
	s.Int64Var(&c.WatermarkPerBackend, "watermark-per-backend", c.WatermarkPerBackend,
		"`requests` that each backend should have in flight: the engine's batch slots; alone, it derives both bounds")
	s.Var(&c.PercentageDeviationForBounds, "percentage-deviation-for-bounds",
		"distance of both bounds from the watermark, as a share of it, above 0 and below 1")
	s.Int64Var(&f.lower, "lower-bound-per-backend", 0,
		"`requests` per backend below which the queue is released (default the profile's, or derived from a watermark that is given)")
	s.Int64Var(&f.upper, "upper-bound-per-backend", 0,
		"`requests` per backend below which an arrival passes an empty queue (default the profile's, or derived from a watermark that is given)")
	s.Int64Var(&c.NumPoppers, "num-poppers", c.NumPoppers, "`goroutines` that release requests when time is what they waited for")
	s.Var(&c.PopperWaitBase, "popper-wait-base", "wait of a popper after an unexpected error")
	s.Var(&c.PopperWaitJitterMax, "popper-wait-jitter-max", "most that is added to it at random")
	s.Var(&c.ExpiryCleanupInterval, "expiry-cleanup-interval", "longest time between two sweeps for expired requests")
	s.Var(&c.MinDrain, "min-drain", "least time from SIGTERM to the end, so that proxies learn of it; 0s where there are none")
}

// fields copies one field from the flags to the configuration, by the flag's name.
var fields = map[string]func(to *config.Document, from *flags){
	"total-capacity": func(to *config.Document, from *flags) {
		to.FairRequestQueue.TotalCapacity = from.document.FairRequestQueue.TotalCapacity
	},
	"flow-capacity": func(to *config.Document, from *flags) {
		to.FairRequestQueue.FlowCapacity = from.document.FairRequestQueue.FlowCapacity
	},
	"queue-ttl": func(to *config.Document, from *flags) {
		to.FairRequestQueue.QueueTTL = from.document.FairRequestQueue.QueueTTL
	},
	"watermark-per-backend": func(to *config.Document, from *flags) {
		to.RequestQueueController.SetWatermark(from.document.RequestQueueController.WatermarkPerBackend)
	},
	"percentage-deviation-for-bounds": func(to *config.Document, from *flags) {
		to.RequestQueueController.PercentageDeviationForBounds = from.document.RequestQueueController.PercentageDeviationForBounds
	},
	"lower-bound-per-backend": func(to *config.Document, from *flags) {
		to.RequestQueueController.LowerBoundPerBackend = new(from.lower)
	},
	"upper-bound-per-backend": func(to *config.Document, from *flags) {
		to.RequestQueueController.UpperBoundPerBackend = new(from.upper)
	},
	"num-poppers": func(to *config.Document, from *flags) {
		to.RequestQueueController.NumPoppers = from.document.RequestQueueController.NumPoppers
	},
	"popper-wait-base": func(to *config.Document, from *flags) {
		to.RequestQueueController.PopperWaitBase = from.document.RequestQueueController.PopperWaitBase
	},
	"popper-wait-jitter-max": func(to *config.Document, from *flags) {
		to.RequestQueueController.PopperWaitJitterMax = from.document.RequestQueueController.PopperWaitJitterMax
	},
	"expiry-cleanup-interval": func(to *config.Document, from *flags) {
		to.RequestQueueController.ExpiryCleanupInterval = from.document.RequestQueueController.ExpiryCleanupInterval
	},
	"min-drain": func(to *config.Document, from *flags) {
		to.RequestQueueController.MinDrain = from.document.RequestQueueController.MinDrain
	},
}

// override applies the flags that were given, by their names from the last to the first: a bound comes after the watermark
// that would derive it.
func (f *flags) override(d *config.Document) {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(fields))) {
		if f.set.Changed(name) {
			fields[name](d, f)
		}
	}
}
