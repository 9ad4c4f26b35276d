package flowcontrol

import (
	"errors"
	"math/bits"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// classMetrics are the metrics by class and model, with configured classes only. The configuration bounds the classes,
// and the limit of labels bounds the pairs.
type classMetrics struct {
	known        labelled[modelClass, *classSeries]
	length       *prometheus.GaugeVec
	tokens       *prometheus.GaugeVec
	backpressure *prometheus.CounterVec
	wait         *prometheus.HistogramVec
}

// modelClass is a pair of label values.
type modelClass struct{ model, class string }

func (m *classMetrics) init(limit int) {
	byClass := []string{"model", "class"}
	m.length = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "weir", Name: "class_queue_length", Help: "Requests of a model that wait in a class.",
	}, byClass)
	m.tokens = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "weir", Name: "class_queue_tokens",
		Help: "Tokens of the prompts of these requests, with cost: uncached: all of them (raw), and those that an engine had cached when " +
			"they arrived (cached).",
	}, append(byClass, "kind"))
	m.backpressure = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Name: "class_backpressure_total",
		Help: "Requests rejected because a limit of their class was reached, by the limit: requests, raw_isl_tokens or cached_tokens.",
	}, append(byClass, "reason"))
	m.wait = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "weir", Name: "class_queue_wait_seconds",
		Help:    "Time in the queue of requests that waited in a class, whatever their outcome.",
		Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300},
	}, []string{"class"})
	m.known.bound(limit)
	m.known.hash = func(of modelClass) uint64 { return hashOf(of.model) ^ bits.RotateLeft64(hashOf(of.class), 1) }
	m.known.add, m.known.drop = m.series, m.drop
	m.known.idle = func(s *classSeries) bool { return gaugeOf(s.length) == 0 }
	m.known.others = sync.OnceValue(func() *classSeries { return m.series(modelClass{overflow, overflow}) })
}

func (m *classMetrics) series(of modelClass) *classSeries {
	s := &classSeries{
		length: m.length.WithLabelValues(of.model, of.class), wait: m.wait.WithLabelValues(of.class),
		raw: m.tokens.WithLabelValues(of.model, of.class, "raw"), cached: m.tokens.WithLabelValues(of.model, of.class, "cached"),
	}
	for k := range s.backpressure {
		s.backpressure[k] = m.backpressure.WithLabelValues(of.model, of.class, fairqueue.LimitKind(k).String())
	}
	return s
}

// drop removes a pair. The waits of its class stay, since other pairs share them.
func (m *classMetrics) drop(of modelClass, _ *classSeries) {
	m.length.DeleteLabelValues(of.model, of.class)
	gone := prometheus.Labels{"model": of.model, "class": of.class}
	m.tokens.DeletePartialMatch(gone)
	m.backpressure.DeletePartialMatch(gone)
}

// of returns the series of a model's requests in a class.
func (m *classMetrics) of(model, class string) *classSeries {
	return m.known.get(modelClass{model, class}, func(of modelClass) bool { return presentable(of.model) && presentable(of.class) })
}

// classSeries are the series of one pair.
type classSeries struct {
	length, raw, cached prometheus.Gauge
	wait                prometheus.Observer
	backpressure        [fairqueue.NumLimits]prometheus.Counter
}

// classNames are the names of the configured classes, by ring, the first of each ring first. Immutable; nil without classes.
type classNames struct {
	first string // the ring of the first class
	rings map[string][]string
}

func namesOf(classes []fairqueue.ClassConfig) *classNames {
	if len(classes) == 0 {
		return nil
	}
	n := &classNames{first: classes[0].Ring, rings: map[string][]string{}}
	for _, c := range classes {
		n.rings[c.Ring] = append(n.rings[c.Ring], c.Name)
	}
	return n
}

// of returns the class of a path, by the rule of fairqueue.Path.
func (n *classNames) of(path *fairqueue.Path) string {
	ring, name := "", ""
	if path != nil {
		ring, name = path.Ring, path.Class
	}
	names := n.rings[ring]
	if names == nil {
		names = n.rings[n.first]
	}
	if slices.Contains(names, name) {
		return name
	}
	return names[0]
}

// inClass is a waiter in a class. The zero value is a waiter in no class.
type inClass struct {
	series *classSeries
	prompt fairqueue.Prompt
}

// join counts a waiter of a model that has this path.
func (n *classNames) join(m *classMetrics, model string, path *fairqueue.Path) (in inClass) {
	if n == nil {
		return in
	}
	if path != nil {
		in.prompt = path.Prompt
	}
	in.series = m.of(model, n.of(path))
	in.series.waiting(in.prompt, 1)
	return in
}

// leave stops counting the waiter.
func (in inClass) leave(w *waiter) {
	if in.series != nil {
		in.series.wait.Observe(w.Waited().Seconds())
		in.series.waiting(in.prompt, -1)
	}
}

func (s *classSeries) waiting(p fairqueue.Prompt, by float64) {
	s.raw.Add(by * float64(p.Raw))
	s.cached.Add(by * float64(p.Cached))
	s.length.Add(by) // last: a series without waiting requests may be dropped
}

// countBackpressure counts a rejection by a limit of a class.
func (m *classMetrics) countBackpressure(model string, err error) {
	if limit := new(fairqueue.LimitError); errors.As(err, &limit) {
		m.of(model, limit.Class).backpressure[limit.Limit].Inc()
	}
}
