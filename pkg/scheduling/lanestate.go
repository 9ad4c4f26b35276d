package scheduling

// laneState is what a board keeps of a lane of many endpoints that is asked about: how much is in flight there, and who
// is best. It follows the board's changes when it is asked the next time, so that a change costs the same however many
// lanes there are, and a lane that nobody asks about costs nothing.
type laneState struct {
	reach  *reach
	tree   tournament // of the ready ones, by index in reach.ready
	counts []int32    // what was in flight there, by index
	stock  int64      // their sum
	seen   uint64     // how many of the board's changes it has followed
	asked  bool       // since lanes were dropped last
	lives  uint64     // how many lanes this memory has been, to whoever has a pointer to it
}

// changeLog is how many changes the board remembers. A lane that has missed more is counted anew, and so is one that has
// missed so many that this is quicker.
const changeLog = 1024

// maxLanes bounds the lanes that are kept; of more, those that are not asked about are dropped.
const maxLanes = 128

// laneKey tells the lanes of one snapshot apart: by their reach where requests share it, else by what was asked.
type laneKey struct {
	shared        *reach
	subset, model string
}

// laneOf returns the state of the query's lane, which is large, up to date.
func (b *Board) laneOf(q *Query) *laneState {
	if l := q.state; l != nil && l.lives == q.stateLives {
		l.asked = true
		l.follow(b)
		return l
	}
	key := laneKey{subset: q.text, model: q.model}
	if !q.confined || !b.scheduler.filtersSubset {
		key = laneKey{shared: q.reach}
	}
	l := b.lanes[key]
	if l == nil {
		b.dropLanes()
		l = &laneState{}
		if n := len(b.spare); n > 0 {
			l, b.spare = b.spare[n-1], b.spare[:n-1]
		}
		l.reach = q.reach
		l.countAnew(b)
		b.lanes[key] = l
	}
	q.state, q.stateLives = l, l.lives
	l.asked = true
	l.follow(b)
	return l
}

// dropLanes makes room for one more.
func (b *Board) dropLanes() {
	if len(b.lanes) < maxLanes {
		return
	}
	for key, l := range b.lanes {
		if !l.asked {
			b.drop(key, l)
		}
		l.asked = false
	}
	if len(b.lanes) == maxLanes {
		b.forgetLanes()
	}
}

// forgetLanes drops all lanes: they are other sets now.
func (b *Board) forgetLanes() {
	for key, l := range b.lanes {
		b.drop(key, l)
	}
}

// drop keeps the memory of the lanes that go for those that come.
func (b *Board) drop(key laneKey, l *laneState) {
	delete(b.lanes, key)
	l.reach = nil
	l.lives++
	if len(b.spare) < maxLanes {
		b.spare = append(b.spare, l)
	}
}

func (l *laneState) countAnew(b *Board) {
	l.tree.enter(len(l.reach.ready), b.lot() != nil)
	l.counts = resized(l.counts, len(l.reach.ready))
	l.stock = 0
	for i, p := range l.reach.ready {
		s := &b.spots[p]
		l.tree.seat(i, s.leaf())
		l.counts[i] = s.inFlight
		l.stock += int64(s.inFlight)
	}
	l.tree.play()
	l.seen = b.changes
}

// follow brings the lane up to the board's last change.
func (l *laneState) follow(b *Board) {
	if b.changes-l.seen > uint64(min(changeLog, len(l.reach.ready)/8)) {
		l.countAnew(b)
		return
	}
	for ; l.seen < b.changes; l.seen++ {
		p := b.log[l.seen%changeLog]
		i, ok := l.reach.index(p)
		if !ok {
			continue
		}
		s := &b.spots[p]
		l.stock += int64(s.inFlight - l.counts[i])
		l.counts[i] = s.inFlight
		l.tree.set(i, s.leaf())
	}
}
