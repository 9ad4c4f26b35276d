package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// fewRivals is the largest number of lanes examined for one grant, and of a lane's endpoints searched for in another
// lane. Beyond it, lanes are assumed to be contended and to overlap.
const fewRivals = 16

// countsIn returns the other lanes in which the charge of w counts and its flow waits. A rival is a lane that has the
// endpoint of w, and in which another flow of w's class waits. The charge of w counts in each lane that shares an
// endpoint with a rival: there w's flow competes with the rival's flows. Without a rival the charge counts in w's own
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

// findRivals sets rivals. all means that a rival has every endpoint, or that there are too many rivals to examine.
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
