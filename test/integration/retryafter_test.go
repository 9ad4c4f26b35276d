package integration

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// moment is the time at which a rejected client would retry: retry-after-ms after the rejection, which was between the
// request's sending and its answer's arrival.
type moment struct{ earliest, latest time.Time }

// burst sends n requests at once, each in its own flow, and returns the moments at which their clients would retry.
func (s *scene) burst(n int, reason string) []moment {
	s.t.Helper()
	moments, answers := make([]moment, n), make([]answer, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			sent := time.Now()
			answers[i] = s.send(from("burst-" + strconv.Itoa(i)))
			moments[i] = moment{sent, time.Now()}
		})
	}
	all.Wait()
	for i, got := range answers {
		if got.reason() != reason {
			s.t.Fatalf("got %d %q %v, want %s", got.status, got.reason(), got.err, reason)
		}
		// The header is rounded up to a whole millisecond.
		wait := time.Duration(retryAfterMS(s.t, got)) * time.Millisecond
		moments[i].earliest = moments[i].earliest.Add(wait - time.Millisecond)
		moments[i].latest = moments[i].latest.Add(wait)
	}
	return moments
}

// apart checks that each client can have its own moment, at least a step from all others. It assigns moments in order
// of their latest time, as early as possible, and none may be late. This succeeds for any moments with that distance.
// It fails if the windows have too little room, as they would with the same Retry-After for all.
func apart(moments []moment, step time.Duration) error {
	left := slices.Clone(moments)
	next := slices.MinFunc(left, func(a, b moment) int { return a.earliest.Compare(b.earliest) }).earliest
	for len(left) > 0 {
		due := -1
		for i, m := range left {
			if !m.earliest.After(next) && (due < 0 || m.latest.Before(left[due].latest)) {
				due = i
			}
		}
		if due < 0 { // none is possible yet: continue at the next earliest time
			next = slices.MinFunc(left, func(a, b moment) int { return a.earliest.Compare(b.earliest) }).earliest
			continue
		}
		if next.After(left[due].latest) {
			return fmt.Errorf("%d of %d have no moment of their own, %v apart", len(left), len(moments), step)
		}
		left = slices.Delete(left, due, due+1)
		next = next.Add(step)
	}
	return nil
}

// span returns a lower bound of the time from the first to the last moment.
func span(moments []moment) time.Duration {
	first := slices.MinFunc(moments, func(a, b moment) int { return a.latest.Compare(b.latest) })
	last := slices.MaxFunc(moments, func(a, b moment) int { return a.earliest.Compare(b.earliest) })
	return last.earliest.Sub(first.latest)
}

// Real clients retry to the millisecond. 200 clients rejected together get 200 different times, so that they do not
// retry together: 10 ms apart, while the drain rate is unknown.
func TestRetryAfterIsSpread(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: byTenant + single + "fairRequestQueue: { totalCapacity: 1, flowCapacity: 1 }\n"})
	s.begin(from("a"))
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(from("a"))
	s.epp.waitFor(1, "weir_queue_length")

	begun := time.Now()
	moments := s.burst(200, "queue-full")
	took := time.Since(begun)
	// Slightly below the step, for clocks read at different instants.
	if err := apart(moments, 9900*time.Microsecond); err != nil {
		t.Error(err)
	}
	if got := span(moments); got > 200*10*time.Millisecond+took {
		t.Errorf("200 places of 10 ms are spread over %v, and were given within %v", got, took)
	}
	if n := s.epp.value("weir_queue_push_errors_total", "error_type", "ErrTooManyFlows"); n != 200 {
		t.Errorf("push errors: %v, want 200", n)
	}
}

// A client retries at will, with two hundred rejections in a short time. Its Retry-After is never beyond the end of a
// short queue's schedule, and it does not delay others: the next client's time is as if it were the second.
func TestRetryAfterIsNotPushed(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{
		models: v.one(), config: byTenant + single + "fairRequestQueue: { totalCapacity: 1, flowCapacity: 1, queueTTL: 1h }\n",
	})
	s.begin(from("a"))
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(from("a"))
	s.epp.waitFor(1, "weir_queue_length")
	latest := 0
	for range 200 {
		got := s.send(from("noisy"))
		if got.reason() != "queue-full" {
			t.Fatalf("got %d %q %v", got.status, got.reason(), got.err)
		}
		latest = max(latest, retryAfterMS(t, got))
	}
	if latest > 5000 {
		t.Errorf("with one waiting the noisy one gets up to %d ms", latest)
	}
	if ms := retryAfterMS(t, s.send(from("quiet"))); ms < 1000 || ms > 1010 {
		t.Errorf("the quiet one gets %d ms", ms)
	}
}

// Retries follow the rate at which the queue drains, as the latest releases have shown.
func TestRetryAfterFollowsTheDrain(t *testing.T) {
	t.Parallel()
	cfg := recorded(1)
	cfg.Engine.ServiceTime = 150 * time.Millisecond // far from the 10 ms of an unknown rate, and from the delays of a busy machine
	s := start(t, setup{
		models: []modelsim.Config{cfg},
		// Any flow reserves the whole queue: while one waits, all others are rejected.
		config: byTenant + single + "fairRequestQueue: { totalCapacity: 40, flowCapacity: 40 }\n",
	})
	over := make(chan struct{})
	var backlog sync.WaitGroup
	for range 40 {
		backlog.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					wantServed(t, "the backlog", s.send(from("backlog")))
				}
			}
		})
	}
	defer backlog.Wait()
	defer close(over)
	expect.True(t, "30 releases", func() bool { return s.epp.value("weir_popper_dequeue_successes_total") >= 30 })

	const n = 20 // the schedule has places for them at any rate: it is as long as the drain of the waiters
	moments := s.burst(n, "queue-full")
	records := s.models[0].Records()
	last := len(records) - 1
	drain := records[last].Arrived.Sub(records[0].Arrived) / time.Duration(last)
	// A third and eight times: the schedule follows a smoothed interval, and a busy machine may release nothing for a
	// while.
	if err := apart(moments, drain/3); err != nil {
		t.Errorf("the queue drains one in %v: %v", drain, err)
	}
	if got := span(moments); got < (n-1)*drain/3 || got > (n-1)*drain*8 {
		t.Errorf("%d places are spread over %v, while the queue drains one in %v", n, got, drain)
	}
}

// Requests sent together end together: 16 slots of 2 s, again and again, with no time between two releases of a burst.
// The Retry-After of a full queue is the time by which it has drained, not the least time.
func TestRetryAfterWhereSlotsEndTogether(t *testing.T) {
	t.Parallel()
	const slots, waiting = 16, 160
	const service = 2 * time.Second
	cfg := modelsim.Fixed(slots, service)
	s := start(t, setup{
		models: []modelsim.Config{cfg},
		// Any flow reserves the whole queue: while one waits, all others are rejected.
		config: byTenant + fmt.Sprintf(`
requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %d, upperBoundPerBackend: %d }
fairRequestQueue: { totalCapacity: %d, flowCapacity: %d, queueTTL: 2m }
`, slots, slots, slots, waiting, waiting),
	})
	for range slots + waiting {
		s.begin(from("backlog"))
	}
	expect.True(t, "two times all slots have ended", func() bool { return s.epp.value("weir_popper_dequeue_successes_total") >= 2*slots })
	before := time.Duration(s.epp.value("weir_queue_length")) * service / slots
	for i := range 20 {
		got := s.send(from("burst-" + strconv.Itoa(i)))
		if got.reason() != "queue-full" {
			t.Fatalf("got %d %q %v, want queue-full", got.status, got.reason(), got.err)
		}
		after := time.Duration(s.epp.value("weir_queue_length")) * service / slots
		// A third less, and a half more: the ends are not exactly together, and the machine is busy with other tests.
		told := time.Duration(retryAfterMS(t, got)) * time.Millisecond
		if told < after*2/3 || told > 2*before*3/2 {
			t.Errorf("rejection %d gets %v, while the queue drains in %v", i, told, after)
		}
	}
}
