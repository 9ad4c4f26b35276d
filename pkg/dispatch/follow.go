package dispatch

import (
	"cmp"
	"slices"

	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// engine is the state of an endpoint's engine whose reports (stock.Config.Follow) or stated slots (stock.Config.Stated)
// set the bound.
type engine struct {
	stock.Learned
	learns     bool  // its bound is learned as long as it is not stated
	stated     int32 // the slots that the engine states; 0: none
	configured int32 // the slots that the endpoint's source states; 0: none
}

// slots returns the bound in requests.
func (e *engine) slots() int32 {
	switch {
	case e.stated > 0:
		return e.stated
	case e.configured > 0:
		return e.configured
	}
	if !e.learns {
		return 0
	}
	return int32(e.Bound())
}

// asksEngines reports whether bounds depend on engines' reports.
func (m *Machine) asksEngines() bool { return m.config.Stock.Follow || m.config.Stock.Stated }

// withLearned returns the ready backends with their slots. Slots stated by the engine come first, then those stated by
// the backend's source, then learned ones.
func (m *Machine) withLearned(ready []stock.Backend) []stock.Backend {
	if !m.asksEngines() {
		m.engines = nil
		return ready
	}
	if m.engines == nil {
		m.engines = map[Endpoint]*engine{}
	}
	ready = slices.Clone(ready)
	var newcomers []int
	for i := range ready {
		b := &ready[i]
		switch known := m.engines[Endpoint(b.ID)]; {
		case known == nil && (b.Slots > 0 || !m.config.Stock.Follow):
			m.engines[Endpoint(b.ID)] = &engine{
				Learned: stock.NewLearned(stock.StartSlots), learns: m.config.Stock.Follow, configured: b.Slots,
			}
		case known != nil:
			known.configured = b.Slots
			b.Slots = known.slots()
		default:
			newcomers = append(newcomers, i)
		}
	}
	if len(newcomers) > 0 {
		m.welcome(ready, newcomers)
	}
	return ready
}

// welcome makes the engines of new ready backends, given by their positions. Each begins with the median of the bounds
// learned for its model, or with stock.StartSlots.
func (m *Machine) welcome(ready []stock.Backend, newcomers []int) {
	learned := map[scheduling.Trait][]int{}
	for e, known := range m.engines { // in any order: only medians are taken
		if known.Moved() {
			model := m.modelOf(e)
			learned[model] = append(learned[model], known.Bound())
		}
	}
	start := map[scheduling.Trait]int{}
	for model, bounds := range learned {
		slices.Sort(bounds)
		start[model] = bounds[(len(bounds)-1)/2]
	}
	for _, i := range newcomers {
		e := Endpoint(ready[i].ID)
		known := &engine{Learned: stock.NewLearned(cmp.Or(start[m.modelOf(e)], stock.StartSlots)), learns: true}
		m.engines[e] = known
		ready[i].Slots = known.slots()
	}
}

// modelOf returns the first model that an endpoint lists, as a trait.
func (m *Machine) modelOf(e Endpoint) scheduling.Trait {
	m.traits, _ = m.placer.TraitsOf(e, m.traits[:0])
	for _, t := range m.traits {
		if t.IsModel() {
			return t
		}
	}
	return scheduling.Trait{}
}

// refollow starts or stops following after a change of the configuration.
func (m *Machine) refollow() {
	if m.asksEngines() == (m.engines != nil) {
		m.relearn()
		return
	}
	if m.asksEngines() {
		m.ready = m.withLearned(m.ready)
	} else {
		for i := range m.ready { // withLearned has made a copy
			if known := m.engines[Endpoint(m.ready[i].ID)]; known != nil {
				m.ready[i].Slots = known.configured
			}
		}
		m.engines = nil
	}
	m.ledger.SetBackends(m.ready)
}

// relearn turns learning on or off for the known engines, by the configuration.
func (m *Machine) relearn() {
	for i := range m.ready {
		known := m.engines[Endpoint(m.ready[i].ID)]
		if known == nil || known.learns == m.config.Stock.Follow {
			continue
		}
		known.learns = m.config.Stock.Follow
		m.ready[i].Slots = known.slots()
	}
	if len(m.engines) > 0 {
		m.ledger.SetBackends(m.ready)
	}
}

// forgetEngines forgets the engines of changed endpoints that have left the pool; with all, of any endpoint that has.
func (m *Machine) forgetEngines(changed []Endpoint, all bool) {
	if len(m.engines) == 0 {
		return
	}
	forget := func(e Endpoint) {
		var known bool
		if m.traits, known = m.placer.TraitsOf(e, m.traits[:0]); !known {
			delete(m.engines, e)
		}
	}
	if !all {
		for _, e := range changed {
			forget(e)
		}
		return
	}
	for e := range m.engines { // each by itself, so in any order
		forget(e)
	}
}

// followEngine changes the bound of an endpoint by its engine's report.
func (m *Machine) followEngine(e Endpoint, s *Signals) {
	known := m.engines[e]
	if known == nil {
		return
	}
	before := known.slots()
	switch {
	case !s.Known:
		known.Forget()
	case s.Slots > 0:
		known.stated = min(s.Slots, stock.MaxPerBackend)
	case known.configured > 0:
		known.stated = 0
	case !known.learns:
		known.stated = 0
	default:
		known.stated = 0
		known.Follow(m.now, stock.Report{
			Running: int(s.Running), Waiting: int(s.Waiting), Preemptions: s.Preemptions, Produced: s.Produced,
			Held: m.placer.Held(e) - m.withheldAt(e),
		}, func() bool { return m.wanted(e) })
	}
	if known.slots() != before {
		m.rebound(e, known.slots())
		if f := m.failing[e]; f != nil {
			m.withhold(f)
		}
	}
}

// rebound changes the bound of a ready endpoint.
func (m *Machine) rebound(e Endpoint, slots int32) {
	id := stock.BackendID(e)
	i := -1
	if m.inOrder {
		if at, found := slices.BinarySearchFunc(m.ready, id, byID); found {
			i = at
		}
	} else {
		i = slices.IndexFunc(m.ready, func(b stock.Backend) bool { return b.ID == id })
	}
	if i < 0 {
		return // not ready: it gets its bound when it becomes ready
	}
	m.ready[i].Slots = slots // withLearned has made a copy
	m.bound(id, m.ledger.SetBackend(m.ready[i]))
	m.reopenFor([]Endpoint{e})
}

// wanted reports whether some waiter could use the endpoint if it had room.
func (m *Machine) wanted(e Endpoint) bool {
	if m.queue.Len() == 0 {
		return false
	}
	if m.queue.Waits("") {
		return true
	}
	waits := func(n *laneNote) bool { return m.queue.Waits(n.lane) }
	if slices.ContainsFunc(m.lanes.whole.all, waits) {
		return true
	}
	l := m.lanes.has[e]
	return l != nil && slices.ContainsFunc(l.all, waits)
}

// settledAt notes that a request at an endpoint has ended.
func (m *Machine) settledAt(e Endpoint) {
	if known := m.engines[e]; known != nil {
		known.Settled()
	}
}
