package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// Requests are rejected too often if more than rejectingShare of those that have ended in the last endingsWindow were, and at
// least rejectingLeast. If half of the flows or fewer have rejections, only those without an endpoint count, as for the chart's
// alert WeirRejecting; the others are a note (ADR 0217).
const (
	rejectingShare = 0.05
	rejectingLeast = 3
)

// Endings are kept for endingsWindow, endingsStep apart.
const (
	endingsWindow = 5 * time.Minute
	endingsStep   = 30 * time.Second
)

// refusingLeast is the number of answers from which on an engine refuses requests if all of them are 4xx.
const refusingLeast = 10

// outcomes are the requests that have ended since the start, at one time.
type outcomes struct {
	at      time.Time
	by      [flowcontrol.NumOutcomes]uint64
	flows   map[string]ofFlow
	engines map[string]answers
}

// ofFlow are a flow's ended requests, and those rejected for want of room or of an endpoint (flowcontrol.NoRoom).
type ofFlow struct{ all, noRoom uint64 }

// endings keeps outcomes. It is safe for concurrent use.
type endings struct {
	mu   sync.Mutex
	kept []outcomes // the oldest first, at most endingsWindow/endingsStep+1
}

// keep adds the newest outcomes.
func (e *endings) keep(now outcomes) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(now.at)
	e.kept = append(e.kept, now)
}

// forget forgets outcomes from before the window, but the newest. The caller holds mu.
func (e *endings) forget(now time.Time) {
	for len(e.kept) > 1 && now.Sub(e.kept[0].at) > endingsWindow {
		e.kept = e.kept[1:]
	}
}

// until returns the endings between the oldest kept outcomes and now.
func (e *endings) until(now outcomes) *recent {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(now.at)
	old := now
	if len(e.kept) > 0 {
		old = e.kept[0]
	}
	r := &recent{window: max(time.Second, now.at.Sub(old.at).Round(time.Second))}
	r.count(&old, &now)
	return r
}

// recent are the requests that have ended in a window, and those rejected as in ofFlow, with the most frequent outcome.
type recent struct {
	window                   time.Duration
	all, n, most, noEndpoint uint64
	main                     flowcontrol.Outcome
	flows                    []status.Holder // the numbers of rejected requests by flow, the largest first
	active                   int             // the number of flows with ended requests
	refusing                 []string        // engines that answer all requests with a 4xx, with the number
}

func (r *recent) count(old, now *outcomes) {
	for o := range now.by {
		r.all += since(old.by[o], now.by[o])
	}
	for _, o := range flowcontrol.NoRoom {
		n := since(old.by[o], now.by[o])
		r.n += n
		if n > r.most {
			r.most, r.main = n, o
		}
	}
	const none = flowcontrol.OutcomeNoEndpoint
	r.noEndpoint = since(old.by[none], now.by[none])
	delete(now.flows, "") // requests refused before their flow was known
	for name, f := range now.flows {
		r.active += one(f.all > old.flows[name].all)
		if n := since(old.flows[name].noRoom, f.noRoom); n > 0 {
			r.flows = append(r.flows, status.Holder{Flow: name, Held: int64(n)})
		}
	}
	slices.SortFunc(r.flows, func(a, b status.Holder) int { return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.Flow, b.Flow)) })
	for _, address := range slices.Sorted(maps.Keys(now.engines)) {
		before, after := old.engines[address], now.engines[address]
		if n := since(before.refused, after.refused); n >= refusingLeast && n == since(before.all, after.all) {
			r.refusing = append(r.refusing, fmt.Sprintf("%s (%d)", address, n))
		}
	}
}

// many reports whether n is too large a part of the requests.
func (r *recent) many(n uint64) bool {
	return n >= rejectingLeast && float64(n) > rejectingShare*float64(r.all)
}

// ofMostFlows reports whether too many requests were rejected, of more than half of the flows.
func (r *recent) ofMostFlows() bool { return r.many(r.n) && 2*len(r.flows) > r.active }

// rejecting returns the text of the reason against the health; "" without one.
func (r *recent) rejecting() string {
	switch {
	case r.ofMostFlows():
		return fmt.Sprintf("%.0f%% of the requests of the last %v were rejected, most of them with %s (%.0f%%)",
			r.share(r.n), r.window, r.main, r.share(r.most))
	case r.many(r.noEndpoint):
		return fmt.Sprintf("%.0f%% of the requests of the last %v were rejected with %s",
			r.share(r.noEndpoint), r.window, flowcontrol.OutcomeNoEndpoint)
	}
	return ""
}

// share returns a number of the requests in percent.
func (r *recent) share(n uint64) float64 { return 100 * float64(n) / float64(max(1, r.all)) }

// outcomes returns the present counts.
func (p *Pool) outcomes(now time.Time, loads []load) outcomes {
	all := outcomes{now, p.controller.EndedBy(), map[string]ofFlow{}, map[string]answers{}}
	for _, f := range p.controller.FlowCounts() {
		all.flows[f.Flow] = ofFlow{f.Requests, f.NoRoom}
	}
	for i := range loads {
		all.engines[loads[i].Address] = loads[i].answers()
	}
	return all
}

// keepEndings keeps outcomes until ctx is done.
func (p *Pool) keepEndings(ctx context.Context) {
	tick := time.NewTicker(endingsStep)
	defer tick.Stop()
	for now := time.Now(); ; {
		p.endings.keep(p.outcomes(now, p.loads()))
		select {
		case now = <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
