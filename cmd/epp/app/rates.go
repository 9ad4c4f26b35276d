package app

import (
	"sync"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// Rates cover at most ratesWindow, from the counts of documents requested at least ratesSpacing apart.
const (
	ratesWindow  = time.Minute
	ratesSpacing = 5 * time.Second
	ratesLeast   = 200 * time.Millisecond
)

// counts are the counts behind the rates of documents, at one time.
type counts struct {
	at             time.Time
	ended, refused uint64
	flows          map[string]flowcontrol.FlowCounts
	engines        map[string]answers
	recent         map[string]uint64 // cost served in a tier since the old counts
}

// answers are the numbers of an engine's answers, and of failures (5xx) and refusals (4xx) among them.
type answers struct{ all, failed, refused uint64 }

// rates keeps counts while documents are requested; otherwise nothing is counted. It is safe for concurrent use.
type rates struct {
	mu   sync.Mutex
	kept []*counts // the oldest first, at most ratesWindow/ratesSpacing+1
}

// before keeps the counts, and returns earlier counts to compare with and the time between; 0 without any.
func (r *rates) before(now *counts) (old *counts, window time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.kept) > 0 && now.at.Sub(r.kept[0].at) > ratesWindow {
		r.kept = r.kept[1:]
	}
	old = now
	if len(r.kept) > 0 && now.at.Sub(r.kept[0].at) >= ratesLeast {
		old = r.kept[0]
	}
	if len(r.kept) == 0 || now.at.Sub(r.kept[len(r.kept)-1].at) >= ratesSpacing {
		r.kept = append(r.kept, now)
	}
	return old, now.at.Sub(old.at)
}

// servedSince returns the cost served to all flows of a tier since the old counts.
func (c *counts) servedSince(old *counts, tier string) (cost uint64) {
	for name, f := range c.flows {
		cost += since(old.flows[name].Served[tier], f.Served[tier])
	}
	return cost
}

// since returns the growth of a count; 0 if it was reset meanwhile.
func since(old, now uint64) uint64 { return now - min(old, now) }

// perSecond returns the rate of a count; 0 if the window is 0.
func perSecond(old, now uint64, window time.Duration) float64 {
	if window <= 0 {
		return 0
	}
	return float64(since(old, now)) / window.Seconds()
}
