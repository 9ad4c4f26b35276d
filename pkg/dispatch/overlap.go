package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// fewRivals is the largest number of lanes that are looked at for one grant, and of endpoints of a lane that are looked
// for in another. Beyond it, lanes are assumed to be contended and to overlap.
const fewRivals = 16

// countsIn returns the other lanes in which what w is charged counts, where its flow waits too. A rival is a lane with the
// endpoint to which w goes, in which another flow of its class waits. The charge of w counts in the lanes that have an
// endpoint of a rival's: there its flow competes with the rival's flows. Without a rival the charge counts in its own
// lane only.
func (m *Machine) countsIn(w *Waiter, e Endpoint) (also []fairqueue.Lane) {
	if m.queue.Len() == 0 || w.queued.Queued() && w.queued.OnlyLane() {
		return nil
	}
	m.names = m.queue.LanesOf(&w.queued, m.names[:0])
	if len(m.names) == 0 || len(m.names) == 1 && m.names[0] == w.queued.Lane {
		return nil
	}
	all := m.findRivals(w, e)
	if !all && len(m.rivals) == 0 {
		return nil
	}
	for _, lane := range m.names {
		n := m.lanes.notes[lane]
		if lane != w.queued.Lane && (all || n == nil || n.whole || slices.ContainsFunc(m.rivals, n.overlaps)) {
			also = append(also, lane)
		}
	}
	return also
}

// findRivals sets rivals. all means that there is one that has every endpoint, or too many to look at.
func (m *Machine) findRivals(w *Waiter, e Endpoint) (all bool) {
	m.rivals = m.rivals[:0]
	waits := func(n *laneNote) bool { return m.queue.OthersWait(&w.queued, n.lane) }
	if len(m.lanes.whole.all) > fewRivals || m.queue.OthersWait(&w.queued, "") ||
		slices.ContainsFunc(m.lanes.whole.all, waits) {
		return true
	}
	l := m.lanes.has[e]
	if l == nil {
		return false
	}
	if len(l.all) > fewRivals {
		return true
	}
	for _, n := range l.all {
		if waits(n) {
			m.rivals = append(m.rivals, n)
		}
	}
	return false
}

// overlaps reports whether two lanes, neither of them whole, have an endpoint in common.
func (n *laneNote) overlaps(o *laneNote) bool {
	small, large := n.endpoints, o.endpoints
	if len(small) > len(large) {
		small, large = large, small
	}
	return n == o || len(small) > fewRivals || slices.ContainsFunc(small, func(e Endpoint) bool {
		_, has := slices.BinarySearch(large, e)
		return has
	})
}
