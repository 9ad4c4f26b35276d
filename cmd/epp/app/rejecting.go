package app

import (
	"context"
	"sync"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// Requests are rejected too often if more than rejectingShare of those that have ended in the last rejectingWindow were, as for
// the chart's alert WeirRejecting, and at least rejectingLeast.
const (
	rejectingShare  = 0.05
	rejectingWindow = 5 * time.Minute
	rejectingStep   = 30 * time.Second
	rejectingLeast  = 3
)

// overload are the outcomes for want of room, which the alert counts.
var overload = []flowcontrol.Outcome{
	flowcontrol.OutcomeQueueFull, flowcontrol.OutcomeFlowFull, flowcontrol.OutcomeShed, flowcontrol.OutcomeDisplaced,
	flowcontrol.OutcomeTTLExpired, flowcontrol.OutcomeNoEndpoint,
}

// outcomes are the requests that have ended since the start, by outcome, at one time.
type outcomes struct {
	at time.Time
	by [flowcontrol.NumOutcomes]uint64
}

// endings keeps outcomes of the last rejectingWindow, rejectingStep apart. It is safe for concurrent use.
type endings struct {
	mu   sync.Mutex
	kept []outcomes // the oldest first, at most rejectingWindow/rejectingStep+1
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
	for len(e.kept) > 1 && now.Sub(e.kept[0].at) > rejectingWindow {
		e.kept = e.kept[1:]
	}
}

// rejections is how many of the requests that ended in a window were rejected for want of room, and the most frequent outcome.
type rejections struct {
	all, n, most uint64
	main         flowcontrol.Outcome
	window       time.Duration
}

// since returns what was rejected since the oldest kept outcomes.
func (e *endings) since(now outcomes) (r rejections) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.kept) == 0 {
		return r
	}
	e.forget(now.at)
	old := &e.kept[0]
	r.window = now.at.Sub(old.at)
	for o := range now.by {
		r.all += since(old.by[o], now.by[o])
	}
	for _, o := range overload {
		n := since(old.by[o], now.by[o])
		r.n += n
		if n > r.most {
			r.most, r.main = n, o
		}
	}
	return r
}

// tooOften reports whether that is a reason against the health.
func (r *rejections) tooOften() bool {
	return r.n >= rejectingLeast && float64(r.n) > rejectingShare*float64(r.all)
}

// share returns a number of the requests in percent.
func (r *rejections) share(n uint64) float64 { return 100 * float64(n) / float64(max(1, r.all)) }

// outcomes returns the present counts.
func (p *Pool) outcomes(now time.Time) outcomes { return outcomes{now, p.controller.EndedBy()} }

// keepEndings keeps outcomes until ctx is done.
func (p *Pool) keepEndings(ctx context.Context) {
	tick := time.NewTicker(rejectingStep)
	defer tick.Stop()
	for now := time.Now(); ; {
		p.endings.keep(p.outcomes(now))
		select {
		case now = <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
