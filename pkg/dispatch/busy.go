package dispatch

import (
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// While the endpoints of a lane are too busy for a class (ClassConfig.Busy), the lane is blocked in that class: its
// requests and its arrivals wait, and it keeps its deficit and earns nothing. Waiters of a blocked class hold up no
// other request. The Placer counts the tokens of prompts at its endpoints, from the placement to the first token
// (Prefilled) or, if that is never reported, to the end of the lease. It reports the endpoints that have become busy or
// free, and only their lanes are checked. The check comes before each turn, so that a blocked class earns nothing.

// busyRules returns the distinct rules of the classes, and the index of each class's rule; -1 if it has none.
func (c *Config) busyRules() (rules []scheduling.BusyRule, of []int) {
	for _, class := range c.Classes {
		number := -1
		if _, _, given := class.Busy.Threshold(); given {
			for i := range rules {
				if rules[i].Equal(&class.Busy) {
					number = i
				}
			}
			if number < 0 {
				number = len(rules)
				rules = append(rules, class.Busy)
			}
		}
		of = append(of, number)
	}
	return rules, of
}

// HasBusyRules reports whether any class has a busy rule.
func (m *Machine) HasBusyRules() bool { return m.busies }

// adoptBusy tells the Placer the rules of the configuration.
func (m *Machine) adoptBusy() {
	rules, of := m.config.busyRules()
	if len(rules) == 0 && !m.busies {
		return
	}
	m.busies, m.ruleOf = len(rules) > 0, of
	m.mayTurn = m.busies
	m.placer.SetBusyRules(rules)
}

// blocked reports whether the endpoints that w may use are too busy for its class.
func (m *Machine) blocked(w *Waiter) bool { return m.busies && m.tooBusy(w) }

// tooBusy is blocked for a configuration with busy rules.
func (m *Machine) tooBusy(w *Waiter) bool {
	class := m.queue.NumberOfClass(&w.queued)
	return class >= 0 && m.ruleOf[class] >= 0 && m.placer.Busy(w.placement, m.ruleOf[class])
}

// reblock blocks the lane of w, which waits, in its class exactly if its endpoints are too busy for it.
func (m *Machine) reblock(w *Waiter) {
	if m.blocked(w) {
		m.queue.CloseLane(&w.queued, fairqueue.LaneBlocked)
	} else {
		m.queue.Unblock(&w.queued)
	}
}

// followBusy checks the lanes of the endpoints that have become busy or free.
func (m *Machine) followBusy() {
	m.turned = m.placer.TakeTurned(m.turned[:0])
	if len(m.turned) == 0 {
		return
	}
	if m.lanes.notes[""] == nil {
		m.reblockIn("")
	}
	for _, n := range m.lanes.whole.all {
		m.reblockIn(n.lane)
	}
	for _, e := range m.turned {
		if l := m.lanes.has[e]; l != nil {
			for _, n := range l.all {
				m.reblockIn(n.lane)
			}
		}
	}
}

// reblockIn is reblock for every class with waiters in the lane.
func (m *Machine) reblockIn(lane fairqueue.Lane) {
	m.ofLane = m.queue.InLane(lane, m.ofLane[:0])
	for _, r := range m.ofLane {
		m.reblock(waiterOf(r))
	}
	m.ofLane = renew(m.ofLane)
}
