package flowcontrol

import (
	"fmt"
	"maps"
	"slices"
	"time"

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
		l := s.lease
		switch {
		case l.stage == stageGranted:
			returning = append(returning, &l.queued)
			b = fmt.Appendf(b, "%d %t %t %t|", l.endpoint, l.held.Promoted(), l.counted, l.preempted == nil)
		case !l.held.Held():
			continue
		case l.victimAt == 0:
			others = append(others, w.describe(s))
		}
		if l.victimAt > 0 {
			victims = append(victims, s)
		}
	}
	slices.SortFunc(victims, func(a, b *subject) int { return int(a.lease.granted) - int(b.lease.granted) })
	for _, s := range victims {
		b = append(b, w.describe(s)...)
	}
	b = append(b, '|')
	slices.Sort(others)
	for _, o := range others {
		b = append(b, o...)
	}
	for _, lane := range slices.Sorted(maps.Keys(w.memory.notes)) {
		n := w.memory.notes[lane]
		b = fmt.Appendf(b, "|%s %d %d %d %t", lane, n.none, n.over, n.hunts, n.closed)
	}
	now := time.Now()
	if !w.armed.IsZero() {
		b = fmt.Appendf(b, "|%d|", min(w.armed.Sub(now), 100*tick))
	}
	if w.config.ReleaseSpacing > 0 {
		b = fmt.Appendf(b, "|%t %d|", w.spaced, max(0, w.released.Add(w.config.ReleaseSpacing).Sub(now)))
	}
	return string(w.queue.AppendState(b, now, 100*tick, returning...))
}

// describe is what distinguishes a lease from another.
func (w *world) describe(s *subject) string {
	l := s.lease
	if l.stage == stageGranted { // the queue tells the rest
		return fmt.Sprintf("unsent %d at %d;", s.kind.tier, l.endpoint)
	}
	return fmt.Sprintf("%d %s at %d: %d %t %t;", l.held.Tier(), s.kind.flow, l.endpoint, l.stage, l.held.Promoted(), l.counted)
}
