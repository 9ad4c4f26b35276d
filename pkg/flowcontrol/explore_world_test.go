package flowcontrol

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/stock"
)

// tick is what an advance of the time is: the starvation threshold, so that whoever waits is starved after one.
const tick = time.Second

// scene is a configuration to explore.
type scene struct {
	name     string
	depth    int // committed number of inputs
	requests int // arrivals at most
	kinds    []arrivalKind
	crowd    []int8  // kinds that arrive before a second exploration begins
	pool     [][]int // slots by endpoint, 0: not ready; shrink goes one to the left, grow one to the right
	start    int     // in pool
	lower    int     // bounds of a lane per ready endpoint
	upper    int
	config   func(*Config)
	limit    int           // of an endpoint's reservations; 0: none
	poison   string        // a lane that the placer panics for
	passOn   bool          // requests that are passed on are an input
	reload   func(*Config) // the other configuration, if a reload is an input
}

// arrivalKind is what tells one request from another.
type arrivalKind struct {
	tier int
	flow string
	lane reach
}

// reach is a placement: "" is the whole pool, a digit that endpoint.
type reach string

func (r reach) Lane() string { return string(r) }

func (r reach) has(e Endpoint) bool { return r == "" || Endpoint(r[0]-'0') == e }

// world is one run of the controller under exploration. Nothing in it runs by itself: what streams, poppers and the
// timer would do are inputs. The time is the bubble's.
type world struct {
	*RequestQueueController
	scene    *scene
	fleet    *fleet
	level    int // in scene.pool
	reloaded bool
	subjects []*subject
	tallies  *tallies
}

// subject is a request with what the explorer knows of it.
type subject struct {
	kind      arrivalKind
	lease     *Lease
	client    *client
	since     time.Time
	last      stage // before the present input
	streamed  bool  // its first byte went out
	outcome   Outcome
	told      bool // it has its outcome
	preempted bool
	wasHeld   bool // it held a lease before the present input
	wasAt     Endpoint
	promoted  bool // its present lease is by promotion
}

// client is a context whose end is an input.
type client struct {
	context.Context
	gone bool
}

func (c *client) Err() error {
	if c.gone {
		return context.Canceled
	}
	return nil
}

// tallies take the place of the metrics that every request touches.
type tallies struct {
	outcomes       [NumOutcomes]tally
	length, stocks tally
}

type tally struct {
	prometheus.Counter
	n int
}

func (t *tally) Inc()        { t.n++ }
func (t *tally) Add(float64) { t.n++ }

// level is a gauge that counts into a tally.
type level struct {
	prometheus.Gauge
	of *tally
}

func (l level) Inc()          { l.of.n++ }
func (l level) Dec()          { l.of.n-- }
func (l level) Add(n float64) { l.of.n += int(n) }

type ignored struct{ prometheus.Observer }

func (ignored) Observe(float64) {}

func newWorld(t *testing.T, s *scene) *world {
	w := &world{scene: s, fleet: &fleet{scene: s}, level: s.start, tallies: new(tallies)}
	c, err := build(w.configuration(false), w.fleet, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	w.RequestQueueController = c
	count := new(tally)
	c.metrics = &metrics{}
	c.metrics.flows.known.limit = 2
	c.metrics.flows.known.add = func(string) *flowSeries { return &flowSeries{served: count} }
	for o := range w.tallies.outcomes {
		c.metrics.outcomes[o] = &w.tallies.outcomes[o]
	}
	c.metrics.pushErrors = noPushErrors
	one := &series{
		metrics: c.metrics, length: level{of: &w.tallies.length}, stock: level{of: &w.tallies.stocks},
		bypass: count, expired: count, cancelled: count, latencyOK: ignored{}, latencyFail: ignored{},
	}
	c.metrics.models.limit, c.metrics.models.add = 1, func(labels) *series { return one }
	w.backends()
	return w
}

var noPushErrors = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "none"}, []string{"m", "t", "e"})

// backends makes the present level of the pool the ready one.
func (w *world) backends() {
	slots := w.scene.pool[w.level]
	var ready []stock.Backend
	for _, n := range slots {
		if n > 0 {
			ready = append(ready, stock.Backend{Slots: max(0, n)})
			if w.scene.upper > 0 {
				ready[len(ready)-1].Slots = 0 // the band is the configuration's
			}
		}
	}
	w.SetBackends(ready, func() { w.fleet.slots = slots })
}

// arrive is what TryEnqueue does before it waits, or PassOn.
func (w *world) arrive(k arrivalKind, passOn bool) {
	s := &subject{kind: k, client: &client{Context: context.Background()}, since: time.Now()}
	w.subjects = append(w.subjects, s)
	s.lease = w.newLease(s.client, &Request{Flow: k.flow, Tier: k.tier, Placement: k.lane})
	at, _ := w.offer(s.since, s.lease, k.tier, passOn)
	switch at {
	case stageSent:
		s.lease.series.bypassed(s.lease)
	case stageEnded:
		rejection := s.lease.series.rejected(s.lease, s.lease.rejection())
		s.outcome, s.told = rejection.Outcome, true
	case stageNew, stageWaiting, stageGranted, stageStreaming:
		s.lease.series.waiting(1)
	}
}

// verdict is what the request's goroutine does when it was woken, or when its client has gone.
func (w *world) verdict(s *subject) {
	if _, err := w.RequestQueueController.verdict(s.client, s.lease, s.since); err != nil {
		s.outcome, s.told = OutcomeOf(err), true
	}
}

// complete ends a stream, twice: only the first time counts.
func (w *world) complete(s *subject) {
	s.outcome, s.told = OutcomeDispatched, true
	if s.preempted {
		s.outcome = OutcomePreempted
	}
	s.lease.OnRequestComplete(Completion{Status: 200})
	s.lease.OnRequestComplete(Completion{Status: 200})
}

// advance lets one tick go by. The timer fires on its way whenever it is due.
func (w *world) advance() {
	for until := time.Now().Add(tick); time.Now().Before(until); {
		next := until
		if !w.armed.IsZero() && w.armed.Before(until) {
			next = w.armed
		}
		time.Sleep(time.Until(next))
		synctest.Wait()
		select {
		case <-w.poke:
			w.popOnce()
		default:
		}
	}
}

// streams does for the streams what they do at once: those whose wait is over say so, those preempted answer so.
func (w *world) streams() error {
	for _, s := range w.subjects {
		if s.lease.stage != stageEnded || s.told {
			continue
		}
		if s.last == stageWaiting || s.last == stageGranted {
			w.verdict(s)
			continue
		}
		select {
		case <-s.lease.Preempted():
		default:
			return fmt.Errorf("%v lost its lease and was not told", s)
		}
		s.preempted = true
		if err := s.lease.OnFirstByte(); OutcomeOf(err) != OutcomePreempted {
			return fmt.Errorf("%v is preempted, and its first byte is let through: %w", s, err)
		}
		w.complete(s)
	}
	return nil
}

func (s *subject) String() string {
	return fmt.Sprintf("tier %d flow %s lane %q", s.kind.tier, s.kind.flow, string(s.kind.lane))
}
