package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// laneOf returns the present lane of a request that is not queued.
func (m *Machine) laneOf(w *Waiter) fairqueue.Lane {
	if w.placement == nil {
		return w.queued.Lane
	}
	return fairqueue.Lane(m.placer.Lane(w.placement))
}

// follow makes later charges and refunds of a request in flight count in its present lane.
func (m *Machine) follow(w *Waiter) { w.queued.Lane = m.laneOf(w) }

// regroup moves the waiters whose lane was renamed by a change of the endpoints or the scheduler. It returns the lanes
// that they have left or joined, ascending, and forgets the notes of these. It visits each lane once, and each waiter
// of a changed lane.
func (m *Machine) regroup() (concerned []fairqueue.Lane) {
	m.pending.regroup = m.pending.regroup.And(m.placer.TakeRegrouping())
	g := m.pending.regroup
	if g == nil {
		return nil
	}
	heirs, moves := map[fairqueue.Lane][]fairqueue.Lane{}, renew(m.moves)
	for _, name := range g.Regrouped() {
		of, _, _ := g.Heirs(name)
		heirs[fairqueue.Lane(name)] = lanes(of)
	}
	m.names = m.queue.LaneNames(m.names[:0])
	for _, name := range m.names {
		of, known, changed := g.Heirs(string(name))
		if !changed {
			continue
		}
		m.heads = m.queue.AllInLane(name, renew(m.heads))
		for _, r := range m.heads {
			w := waiterOf(r)
			to := m.laneOf(w)
			if to != name {
				moves = append(moves, fairqueue.Move{Request: r, To: to})
				m.touchOf(w)
			}
			if !known && !slices.Contains(heirs[name], to) {
				heirs[name] = append(heirs[name], to)
			}
		}
		if known {
			heirs[name] = lanes(of)
		} else if len(heirs[name]) == 1 && heirs[name][0] == name {
			delete(heirs, name)
			concerned = append(concerned, name) // its endpoints may have changed
		}
	}
	for name, of := range heirs {
		concerned = append(append(concerned, name), of...)
	}
	slices.Sort(concerned)
	concerned = slices.Compact(concerned)
	for _, name := range concerned {
		m.heads = m.queue.ParkedIn(name, renew(m.heads))
		for _, r := range m.heads {
			m.touch(waiterOf(r).flow.tenant) // no flow is parked there any longer
		}
		if !m.users.on {
			continue
		}
		m.heads = m.queue.ParkedUnder(name, renew(m.heads))
		for _, r := range m.heads {
			m.touchOf(waiterOf(r))
		}
	}
	m.queue.Regroup(heirs, moves)
	m.pending.regroup = nil
	m.moves = renew(moves)
	if g.Any() { // and lanes without waiters may now be named for another model than the explored one
		for len(m.lanes.all) > 0 {
			n := m.lanes.all[len(m.lanes.all)-1]
			m.open(n)
			m.lanes.drop(n)
		}
	}
	for _, name := range concerned {
		if n := m.lanes.notes[name]; n != nil {
			m.lanes.drop(n)
		}
	}
	return concerned
}

func lanes(names []string) []fairqueue.Lane {
	all := make([]fairqueue.Lane, len(names))
	for i, name := range names {
		all[i] = fairqueue.Lane(name)
	}
	return all
}
