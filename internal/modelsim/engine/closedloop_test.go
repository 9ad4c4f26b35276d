package engine

import (
	"slices"
	"testing"
	"time"
)

// epoch is the start of virtual time.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// loopResult has the measurements of a closed loop.
type loopResult struct {
	perSecond float64
	p50       time.Duration
}

// closedLoop keeps inFlight equal jobs in the engine for the given virtual time: each one's successor arrives the
// turnaround after its end, as from a client that waits for its answer. The first tenth is warm-up. The loop jumps from
// event to event and reads no clock.
func closedLoop(t *testing.T, cfg Config, job Job, inFlight int, turnaround, span time.Duration) loopResult {
	t.Helper()
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	arrivals := make([]time.Time, inFlight) // sorted; constant turnaround keeps it so
	for i := range arrivals {
		arrivals[i] = epoch
	}
	started := make(map[ID]time.Time)
	warm, end := epoch.Add(span/10), epoch.Add(span)
	var latencies []time.Duration
	note := func(events []Event) {
		for _, ev := range events {
			if ev.End != Finished {
				continue
			}
			if ev.At.After(warm) {
				latencies = append(latencies, ev.At.Sub(started[ev.ID]))
			}
			delete(started, ev.ID)
			arrivals = append(arrivals, ev.At.Add(turnaround))
		}
	}
	for now := epoch; now.Before(end); {
		next, ok := e.Next()
		if len(arrivals) > 0 && (!ok || arrivals[0].Before(next)) {
			now = arrivals[0]
			arrivals = arrivals[1:]
			id, events := e.Submit(now, job)
			started[id] = now
			note(events)
			continue
		}
		now = next
		note(e.Advance(now))
	}
	slices.Sort(latencies)
	return loopResult{
		perSecond: float64(len(latencies)) / end.Sub(warm).Seconds(),
		p50:       latencies[len(latencies)/2],
	}
}
