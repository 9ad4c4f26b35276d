package fairqueue

// Virtual times are compared across their rollover, so they must be less than 2^63 apart. A head that can go is at most
// one increment ahead of virtual time, which is less than 2^60. A head that cannot go (its flow is parked, or its lane
// closed) stays put while virtual time advances. So whenever virtual time has advanced by rebaseEvery, all starts that
// are further behind than largestLag are moved up to that: their flows are still ahead of all others, but no further.
// Virtual time at the last check is at most rebaseEvery and one increment back, so no two tags are further apart than
// largestLag + rebaseEvery + 2·2^60 = 2^63 − 2^60.
const (
	largestStep VirtualTime = 1 << 60 // above every increment
	largestLag              = 2 * largestStep
	rebaseEvery             = 3 * largestStep
)

// rebase marks the level as stale when its virtual time has advanced far enough: at weight 1 once in 3.3e12 of cost,
// and at most at every third pop.
func (l *level) rebase() {
	if l.virtual-l.rebased >= rebaseEvery {
		l.rebased, l.stale = l.virtual, true
	}
}

func (wfq) freshen(l *level, s *share) (moved bool) {
	if l.virtual-s.start <= largestLag {
		return false
	}
	s.start = l.virtual - largestLag
	return true
}
