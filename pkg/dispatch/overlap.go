package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// fewOverlaps is the largest number of lanes that are asked, for one grant, whether others wait in them. Beyond it some
// are assumed to.
const fewOverlaps = 8

// countsIn returns the other lanes in which what w is charged counts: those in which its flow waits too, of sets that
// have the endpoint to which it goes, while another flow of its class waits for that endpoint. Where nobody else does,
// what w takes there is nobody's, and is held against its flow nowhere else.
func (m *Machine) countsIn(w *Waiter, e Endpoint) (also []fairqueue.Lane) {
	if m.queue.Len() == 0 {
		return nil
	}
	m.names = m.queue.LanesOf(&w.queued, m.names[:0])
	for _, lane := range m.names {
		if lane != w.queued.Lane && m.laneHas(lane, e) {
			also = append(also, lane)
		}
	}
	if len(also) > 0 && !m.contended(w, e) {
		return nil
	}
	return also
}

// laneHas reports whether an endpoint is in a lane in which anybody waits.
func (m *Machine) laneHas(lane fairqueue.Lane, e Endpoint) bool {
	n := m.lanes.notes[lane]
	if n == nil || n.whole || m.reacher == nil {
		return n != nil || lane == ""
	}
	_, has := slices.BinarySearch(n.endpoints, e)
	return has
}

// contended reports whether another flow of the class of w waits for an endpoint.
func (m *Machine) contended(w *Waiter, e Endpoint) bool {
	if m.queue.OthersWait(&w.queued, "") || m.queue.OthersWait(&w.queued, w.queued.Lane) {
		return true
	}
	asked := 0
	wait := func(n *laneNote) bool {
		asked++
		return asked > fewOverlaps || m.queue.OthersWait(&w.queued, n.lane)
	}
	if slices.ContainsFunc(m.lanes.whole.all, wait) {
		return true
	}
	l := m.lanes.has[e]
	return l != nil && slices.ContainsFunc(l.all, wait)
}
