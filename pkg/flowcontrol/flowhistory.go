package flowcontrol

import "github.com/prometheus/client_golang/prometheus"

// flowHistory collects the metrics that flows count themselves: a request changes a number of its flow, without looking
// up a label.
type flowHistory struct {
	flows                       *flowMetrics
	waiting, inFlight, requests *prometheus.Desc
	served, rejections, tokens  *prometheus.Desc
}

func newFlowHistory(flows *flowMetrics) *flowHistory {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("weir_flow_"+name, help, append([]string{"flow"}, labels...), nil)
	}
	return &flowHistory{
		flows:    flows,
		served:   desc("served_cost_total", "Cost of the requests dispatched, by flow, as charged at dispatch: with cost: tokens, the estimates."),
		waiting:  desc("queue_length", "Requests of a flow that wait in the queue now."),
		inFlight: desc("in_flight", "Requests of a flow that are dispatched and not complete."),
		requests: desc("requests_total", "Requests of a flow that have ended, served or not; flow is empty if it was not yet known."),
		rejections: desc("rejections_total",
			"Requests of a flow that were not served, by outcome; flow is empty if it was not yet known.", "outcome"),
		tokens: desc("tokens_total", "Tokens reported by the answers to a flow's requests: input, output, and the part of the input that was "+
			"cached.", "model", "kind"),
	}
}

// Describe implements prometheus.Collector.
func (h *flowHistory) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{h.served, h.waiting, h.inFlight, h.requests, h.rejections, h.tokens} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (h *flowHistory) Collect(out chan<- prometheus.Metric) {
	for _, s := range h.flows.shown() {
		gauge := func(d *prometheus.Desc, v int64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), s.flow)
		}
		counter := func(d *prometheus.Desc, v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, append([]string{s.flow}, labels...)...)
		}
		var served uint64
		for _, cost := range s.served.all {
			served += cost
		}
		counter(h.served, float64(served))
		gauge(h.waiting, s.waiting.Load())
		gauge(h.inFlight, s.inFlight.Load())
		further := s.furtherNow()
		for _, r := range further.outcomes {
			counter(h.rejections, float64(r.n), r.label())
		}
		counter(h.requests, float64(s.requests.Load())) // after the rejections, so that it is never less
		for _, t := range further.models {
			counter(h.tokens, float64(t.Input), t.model, "input")
			counter(h.tokens, float64(t.Output), t.model, "output")
			counter(h.tokens, float64(t.Cached), t.model, "cached")
		}
	}
}

// furtherNow returns a copy.
func (s *flowSeries) furtherNow() furtherSeries {
	s.mu.Lock()
	defer s.mu.Unlock()
	return furtherSeries{models: append([]modelTokens(nil), s.further.models...), outcomes: append([]rejections(nil), s.further.outcomes...)}
}
