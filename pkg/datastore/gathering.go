package datastore

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// gatherTime is the time from the last publication until a gain is published, so that several gains are published
// together. Without it, a pool of thousands that becomes ready one by one would make thousands of snapshots, and every
// subscriber processes each one completely.
const gatherTime = 50 * time.Millisecond

// gathering delays publications that can wait. It is guarded by the store's mu.
type gathering struct {
	last  time.Time   // of the last publication
	timer *time.Timer // of the next one; nil if none is delayed
	ended bool
}

// defers reports whether a publication must wait. If so, publish is called gatherTime after the last publication, once
// for all delayed ones. A publication more than gatherTime after the last one does not wait.
func (g *gathering) defers(now time.Time, publish func()) bool {
	wait := g.last.Add(gatherTime).Sub(now)
	if g.ended || wait <= 0 {
		return false
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(wait, publish)
	}
	return true
}

// published notes a publication, which includes everything delayed so far.
func (g *gathering) published(now time.Time) {
	g.last = now
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
}

// end stops the delaying for good.
func (g *gathering) end() {
	g.ended = true
	if g.timer != nil {
		g.timer.Stop()
	}
}

// canWait reports whether a publication may be delayed: it has only gains, and not the pool's first ready endpoint, for
// which requests may be waiting.
func canWait(old *scheduling.Snapshot, endpoints []scheduling.Endpoint) bool {
	return onlyGains(old, endpoints) &&
		(anyReady(old) || !slices.ContainsFunc(endpoints, func(e scheduling.Endpoint) bool { return e.Ready }))
}

func anyReady(s *scheduling.Snapshot) bool {
	for i := range s.Len() {
		if s.At(i).Ready {
			return true
		}
	}
	return false
}

// onlyGains reports whether endpoints, sorted by ID, differ from a snapshot only by additional or newly ready
// endpoints. Any other change must not wait, since requests would go to wrong endpoints.
func onlyGains(old *scheduling.Snapshot, endpoints []scheduling.Endpoint) bool {
	at := 0
	for i := range old.Len() {
		before := old.At(i)
		for at < len(endpoints) && endpoints[at].ID < before.ID {
			at++
		}
		if at == len(endpoints) {
			return false
		}
		before.Ready = before.Ready || endpoints[at].Ready
		if !sameEndpoint(before, endpoints[at]) {
			return false
		}
		at++
	}
	return true
}
