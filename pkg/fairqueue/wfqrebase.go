package fairqueue

// Virtual times are compared across their rollover, so they must not lie 2^63 or more apart. A head that can go is at
// most one increment ahead of virtual time, and that is less than 2^60. One that cannot go (its flow parked, its lane
// closed) stands still while virtual time goes on. So each time when that has gone on by rebaseEvery, all starts that lie
// further back than largestLag are moved up to it: their flows are still before all others, and no longer than that.
// Virtual time at the last look is at most rebaseEvery and one increment back, so no two tags are further apart than
// largestLag + rebaseEvery + 2·2^60 = 2^63 − 2^60.
const (
	largestStep VirtualTime = 1 << 60 // above every increment
	largestLag              = 2 * largestStep
	rebaseEvery             = 3 * largestStep
)

// rebase makes the level stale when its virtual time has gone on far enough: at weight 1 once in 3.3e12 of cost, and
// never more often than at every third pop.
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
