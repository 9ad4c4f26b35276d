package fairqueue

// Virtual times are compared across their rollover, so they must be less than 2^63 apart. A start is at most
// largestLead ahead of virtual time, and its tag one increment further, which is less than 2^60. A head that cannot go
// (its flow is parked, or its lane closed) stays put while virtual time advances. So whenever virtual time has advanced
// by rebaseEvery, starts more than largestLag behind are moved up to largestLag behind; their flows still go before all
// others. Before that check, a pop moves virtual time at most to a tag, and adds an increment. So any two tags are at
// most largestLag + rebaseEvery + largestLead plus two increments apart, less than 2^63.
const (
	largestStep VirtualTime = 1 << 60 // above every increment
	largestLag  VirtualTime = 2 * largestStep
	rebaseEvery VirtualTime = 3 * largestStep
)

// rebase marks the level as stale when its virtual time has advanced far enough: at weight 1 once per 3.3e12 of cost,
// and at most at every third pop.
func (l *level) rebase() {
	if l.virtual-l.rebased >= rebaseEvery {
		l.rebased, l.stale = l.virtual, true
	}
}

func (wfq) freshen(l *level, s *share) (moved bool) { return s.freshen(l) }
