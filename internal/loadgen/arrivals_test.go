package loadgen

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A worker sends its next request only after the last answer. Workers start one by one, so that they are out of phase.
func TestClosedLoopStagger(t *testing.T) {
	inBubble(t, takes(100*time.Millisecond), func(b *bubble) {
		w := load(ClosedLoop{Workers: 3, Stagger: 10 * time.Millisecond})
		w.Requests = 6
		wantTimes(b, "starts", starts(b.run(w)),
			0, 10*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond, 110*time.Millisecond, 120*time.Millisecond)
	})
}

// Only the first Staggered workers start one by one; the rest start together, one stagger after the last of them.
func TestClosedLoopStaggersSomeOnly(t *testing.T) {
	inBubble(t, takes(time.Hour/2), func(b *bubble) {
		w := load(ClosedLoop{Workers: 5, Stagger: time.Second, Staggered: 2})
		w.Requests, w.Begin = 5, time.Minute
		wantTimes(b, "starts", starts(b.run(w)),
			time.Minute, time.Minute+time.Second, time.Minute+2*time.Second, time.Minute+2*time.Second, time.Minute+2*time.Second)
	})
}

// An open loop's arrivals are equally spaced, however long the answers take. Latencies are measured from the due time.
func TestOpenLoopDoesNotWaitForAnswers(t *testing.T) {
	inBubble(t, takes(time.Second), func(b *bubble) {
		w := load(OpenLoop{Rate: 10})
		w.Requests = 5
		results := b.run(w)
		wantTimes(b, "starts", starts(results),
			0, 100*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond, 400*time.Millisecond)
		for i := range results {
			if r := &results[i]; !r.OK() || r.Total != time.Second {
				b.Errorf("request %d: %+v", i, r)
			}
		}
	})
}

// An arrival beyond MaxInFlight is recorded as unsent at its due time, and is not sent later.
func TestOpenLoopWithoutRoom(t *testing.T) {
	inBubble(t, takes(250*time.Millisecond), func(b *bubble) {
		w := load(OpenLoop{Rate: 10, MaxInFlight: 2})
		w.Requests = 6
		results := b.run(w)
		var faults []string
		sent := 0
		for i := range results {
			faults = append(faults, results[i].Fault())
			sent += results[i].Attempts
		}
		// Two are in flight from 0.1 s on. The first ends at 0.25 s, so the request due at 0.3 s has room.
		if want := []string{"", "", "unsent", "", "", "unsent"}; !slices.Equal(faults, want) {
			b.Errorf("faults %q, want %q", faults, want)
		}
		if sent != 4 {
			b.Errorf("%d were sent, want 4", sent)
		}
	})
}

// The same seed gives the same Poisson arrivals, and another seed gives others. Their mean is that of the rate.
func TestPoissonFollowsItsSeed(t *testing.T) {
	draw := func(seed uint64) []time.Duration {
		next := OpenLoop{Rate: 100, Poisson: true, Seed: seed}.due()
		all := make([]time.Duration, 20_000)
		for i := range all {
			all[i] = next()
		}
		return all
	}
	first := draw(7)
	if !slices.Equal(first, draw(7)) {
		t.Error("two draws of one seed differ")
	}
	if slices.Equal(first, draw(8)) {
		t.Error("two seeds draw the same")
	}
	if !slices.IsSorted(first) {
		t.Error("arrivals go back in time")
	}
	// Exponential gaps: the mean and the standard deviation are both 10 ms; the error of either is well below 3 %.
	var sum, squares float64
	last := time.Duration(0)
	for _, at := range first {
		gap := (at - last).Seconds()
		sum, squares, last = sum+gap, squares+gap*gap, at
	}
	n := float64(len(first))
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean-0.01) > 0.0003 || math.Abs(deviation-0.01) > 0.0005 {
		t.Errorf("gaps of %.4f s ± %.4f, want 0.01 ± 0.01", mean, deviation)
	}
}

// A run sends at the drawn times.
func TestPoissonRunsAreRepeatable(t *testing.T) {
	var runs [2][]time.Duration
	for i := range runs {
		inBubble(t, takes(30*time.Millisecond), func(b *bubble) {
			w := load(OpenLoop{Rate: 50, Poisson: true, Seed: 3})
			w.Requests = 200
			runs[i] = starts(b.run(w))
		})
	}
	if len(runs[0]) != 200 || !slices.Equal(runs[0], runs[1]) {
		t.Errorf("two runs of one seed differ: %v, %v", runs[0], runs[1])
	}
}

// A schedule's requests are sent at their times, beyond MaxInFlight not at all, each with its own headers.
func TestScheduleKeepsItsTimes(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Get("X-Number")+r.Header.Get("X-All"))
		mu.Unlock()
		takes(time.Second)(w, r)
	}
	inBubble(t, server, func(b *bubble) {
		w := load(Schedule{At: []time.Duration{0, time.Second / 2, 2 * time.Second, 2 * time.Second, 2 * time.Second}, MaxInFlight: 2})
		w.Request.Header = http.Header{"X-All": {"!"}}
		w.Request.Headers = func(i int) http.Header { return http.Header{"X-Number": {strconv.Itoa(i)}} }
		results := b.run(w)
		wantTimes(b, "starts", starts(results), 0, time.Second/2, 2*time.Second, 2*time.Second, 2*time.Second)
		if last := results[4]; last.Fault() != "unsent" {
			b.Errorf("%+v, want unsent", last)
		}
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(seen)
		if got := strings.Join(seen, " "); got != "0! 1! 2! 3!" {
			b.Errorf("headers %s", got)
		}
	})
	if err := (Schedule{At: []time.Duration{2, 1}}).validate(); err == nil {
		t.Error("times out of order are taken")
	}
}

// A result has the tokens that its answer reports, streamed or not.
func TestUsageOfAnswers(t *testing.T) {
	const usage = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`
	for _, stream := range []bool{false, true} {
		server := func(w http.ResponseWriter, _ *http.Request) {
			if stream {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte("data: {}\n\ndata: " + usage + "\n\ndata: [DONE]\n\n"))
				return
			}
			_, _ = w.Write([]byte(usage))
		}
		inBubble(t, server, func(b *bubble) {
			w := load(Schedule{At: []time.Duration{0}})
			w.Request.Usage, w.Request.Stream = true, stream
			r := b.run(w)[0]
			if u := r.Usage; !r.UsageKnown || u.Input != 9 || u.Output != 2 || u.Cached != 4 {
				b.Errorf("stream %v: %+v", stream, r)
			}
			w.Request.Usage = false
			if r = b.run(w)[0]; r.UsageKnown {
				b.Errorf("stream %v: read unasked: %+v", stream, r)
			}
		})
	}
}
