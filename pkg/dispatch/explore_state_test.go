package dispatch

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// state is all that decides what can happen from now on. What has ended is forgotten, requests of a kind are one
// another's equals, and times and sequences count only as far as they are compared: worlds of the same state need to
// be explored once.
func (w *world) state() string {
	var returning []*fairqueue.Request
	var others []string
	b := fmt.Appendf(nil, "%d %t %d|", w.level, w.reloaded, w.scene.requests-len(w.subjects))
	victims := make([]*subject, 0, len(w.subjects))
	for _, s := range w.subjects {
		l := s.w
		switch {
		case l.stage == StageGranted:
			returning = append(returning, &l.queued)
			b = fmt.Appendf(b, "%d %t %t %t|", l.lease.Endpoint(), l.lease.held.Promoted(), l.lease.counted, !l.lease.preemptible)
		case !l.lease.held.Held():
			continue
		case l.lease.victimAt == 0:
			others = append(others, w.describe(s))
		}
		if l.lease.victimAt > 0 {
			victims = append(victims, s)
		}
	}
	slices.SortFunc(victims, func(a, b *subject) int { return int(a.w.lease.victimAge) - int(b.w.lease.victimAge) })
	for _, s := range victims {
		b = append(b, w.describe(s)...)
	}
	b = append(b, '|')
	slices.Sort(others)
	for _, o := range others {
		b = append(b, o...)
	}
	for _, lane := range slices.Sorted(maps.Keys(w.lanes.notes)) {
		n := w.lanes.notes[lane]
		b = fmt.Appendf(b, "|%s %d %d %d %t", lane, n.none, n.over, n.hunts, n.closed)
	}
	now := w.clock
	if w.config.ReleaseSpacing > 0 {
		b = fmt.Appendf(b, "|%t %d|", w.spaced, max(0, w.released.Add(w.config.ReleaseSpacing).Sub(now)))
	}
	return string(w.queue.AppendState(b, now, 100*tick, returning...))
}

// describe is what distinguishes a lease from another.
func (w *world) describe(s *subject) string {
	l := s.w
	if l.stage == StageGranted { // the queue tells the rest
		return fmt.Sprintf("unsent %d at %d;", s.kind.tier, l.lease.Endpoint())
	}
	return fmt.Sprintf("%d %s at %d: %d %t %t;", l.lease.held.Tier(), s.kind.flow, l.lease.Endpoint(), l.stage, l.lease.held.Promoted(), l.lease.counted)
}
