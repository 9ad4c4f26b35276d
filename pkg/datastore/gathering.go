package datastore

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// gatherTime is how long a gain waits for others after a publication. A pool of thousands that becomes ready endpoint by
// endpoint is then some tens of snapshots, each of which everybody works through whole.
const gatherTime = 50 * time.Millisecond

// gathering puts off publications that can wait. The store's mu guards it.
type gathering struct {
	last  time.Time   // of the last publication
	timer *time.Timer // of the next one; nil: there is none
	ended bool
}

// defers reports whether a publication waits: its function is then called, once for all, gatherTime after the last
// publication. The first one after that much quiet does not wait.
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

// published notes a publication, which has everything that was put off.
func (g *gathering) published(now time.Time) {
	g.last = now
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
}

// end stops waiting for good.
func (g *gathering) end() {
	g.ended = true
	if g.timer != nil {
		g.timer.Stop()
	}
}

// canWait reports whether a publication may be put off: it has only gains, and not the first ready endpoint, which
// somebody may be waiting for.
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

// onlyGains reports whether endpoints, in order of ID, differ from a snapshot in nothing but endpoints more, and in some
// that have become ready. Whatever else changed has somebody who would be sent to the wrong place.
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
