package extproc

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/metering"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/usage"
)

// metrics are the metrics of the streams. The controller counts the outcomes of requests.
type metrics struct {
	streams         prometheus.GaugeFunc
	bodyBytes       prometheus.GaugeFunc
	streamsTotal    *prometheus.CounterVec
	unexpected      *prometheus.CounterVec
	panics          prometheus.Counter
	headersSeconds  prometheus.Histogram
	firstToken      prometheus.Histogram
	unknownPriority prometheus.Counter
	unknownClass    prometheus.Counter
	unknownRole     prometheus.Counter
	clamps          *prometheus.CounterVec
	upstreamStatus  *prometheus.CounterVec
	usageTokens     *prometheus.CounterVec
	unknownUsage    prometheus.Counter
	promptsUnknown  prometheus.Counter
	// estimatedTokens are the estimated tokens of input and of output.
	estimatedTokensVec *prometheus.CounterVec
	estimatedTokens    [2]prometheus.Counter

	gateStreams     prometheus.Gauge
	gateUnknown     prometheus.Counter
	placedBefore    prometheus.Counter
	streamsByMode   [request.NumModes]prometheus.Counter
	statusByHundred [6]prometheus.Counter
}

// latencyBuckets are from a millisecond to ten minutes, in seconds.
var latencyBuckets = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600}

// newMetrics returns the metrics, with gauges of the open streams and of the bytes of bodies.
func newMetrics(streams, bytes func() int64) *metrics {
	m := &metrics{
		streamsTotal: counters("weir_extproc_streams_total",
			"Streams that Envoy opened, by the mode of the request body.", "mode"),
		unexpected: counters("weir_extproc_unexpected_messages_total",
			"Messages that make no sense in the state of their stream; Weir sent an empty reply.", "message", "state"),
		panics: counter("weir_extproc_panics_total",
			"Panics while serving a stream. Each is a defect."),
		headersSeconds: histogram(
			"weir_extproc_response_headers_seconds",
			"From a request's arrival to its response headers. For a streamed answer that is not the first token."),
		firstToken: histogram(
			"weir_extproc_time_to_first_token_seconds",
			"From a request's arrival to the first token of its answer, where it is seen: by the first-token gate, or in FULL_DUPLEX_STREAMED."),
		unknownPriority: counter("weir_priority_unknown_total",
			"Requests that named an unknown tier; the name was ignored."),
		unknownClass: counter("weir_class_unknown_total",
			"Requests that named an unknown class or family; they went to the default family, or to the first class."),
		unknownRole: counter("weir_role_unknown_total",
			"Requests whose tenant's role is not in the configuration; the default role counted."),
		clamps: counters("weir_priority_clamps_total",
			"Requests whose tier was lowered to their tenant's maxClass.", "requested", "effective"),
		upstreamStatus: counters("weir_extproc_upstream_responses_total",
			"Answers of dispatched requests, by the class of their status.", "status"),
		estimatedTokensVec: counters("weir_extproc_estimated_tokens_total",
			"Estimated tokens of the requests whose usage became known, with cost: tokens.", "kind"),
		unknownUsage: counter("weir_extproc_usage_unknown_total",
			"Requests without usage, with cost: tokens. They are charged their estimate, or more if the answer took longer."),
		promptsUnknown: counter("weir_affinity_unknown_total",
			"Requests without a prompt to compare: their body was not read, or names no session."),
		usageTokens: counters("weir_extproc_usage_tokens_total",
			"Tokens that answers reported, unless usage is none.", "kind"),
	}
	m.streams = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_extproc_streams",
		Help: "Open streams. A plateau at exactly 1024 is the default circuit breaker of Envoy's cluster for Weir.",
	}, func() float64 { return float64(streams()) })
	m.bodyBytes = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_extproc_body_bytes",
		Help: "Bytes of request bodies held in memory.",
	}, func() float64 { return float64(bytes()) })
	m.gateStreams = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_gate_streams",
		Help: "Open streams of first-token gates.",
	})
	m.gateUnknown = counter("weir_gate_unknown_total",
		"Answers that a first-token gate did not hold, because it does not know their request.")
	m.placedBefore = counter("weir_extproc_placed_before_total",
		"Requests that came with a destination from an earlier filter: Weir passed them on, without queueing or counting them.")
	for i, kind := range [...]string{"input", "output"} {
		m.estimatedTokens[i] = m.estimatedTokensVec.WithLabelValues(kind)
	}
	for i := range m.streamsByMode {
		m.streamsByMode[i] = m.streamsTotal.WithLabelValues(request.BodyMode(i).String())
	}
	for i, label := range [...]string{"unknown", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		m.statusByHundred[i] = m.upstreamStatus.WithLabelValues(label)
	}
	return m
}

func (m *metrics) register(r prometheus.Registerer, further ...prometheus.Collector) error {
	var errs []error
	for _, c := range append(further, []prometheus.Collector{
		m.streams, m.bodyBytes, m.streamsTotal, m.unexpected, m.panics, m.headersSeconds, m.firstToken,
		m.unknownPriority, m.unknownClass, m.unknownRole, m.clamps, m.upstreamStatus, m.usageTokens, m.estimatedTokensVec, m.unknownUsage, m.promptsUnknown,
		m.gateStreams, m.gateUnknown, m.placedBefore,
	}...) {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// countCharge counts the estimate of a request whose usage is known, and requests without usage.
func (m *metrics) countCharge(c *metering.Charge, basis metering.Basis) {
	switch basis {
	case metering.ByUsage:
		estimated := c.Estimated()
		m.estimatedTokens[0].Add(float64(estimated.Input))
		m.estimatedTokens[1].Add(float64(estimated.Output))
	case metering.ByTime:
		m.unknownUsage.Inc()
	case metering.ByNothing, metering.ByRoom: // nothing was served
	}
}

// countUsage counts the tokens reported in a response.
func (m *metrics) countUsage(t usage.Tokens) {
	m.usageTokens.WithLabelValues("input").Add(float64(t.Input))
	m.usageTokens.WithLabelValues("output").Add(float64(t.Output))
	m.usageTokens.WithLabelValues("cached").Add(float64(t.Cached))
}

// countTier counts a requested tier that was not granted, and an unknown role.
func (m *metrics) countTier(q *request.Request, tiers []request.Tier) {
	if q.UnknownRole {
		m.unknownRole.Inc()
	}
	if q.UnknownTier {
		m.unknownPriority.Inc()
	}
	if q.AskedTier != q.Tier {
		m.clamps.WithLabelValues(tiers[q.AskedTier].Name, tiers[q.Tier].Name).Inc()
	}
}

// countResponse counts one response by its status.
func (m *metrics) countResponse(status int) {
	hundred := status / 100
	if hundred < 1 || hundred > 5 {
		hundred = 0
	}
	m.statusByHundred[hundred].Inc()
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: latencyBuckets, NativeHistogramBucketFactor: 1.1,
		NativeHistogramMaxBucketNumber: 100,
	})
}
