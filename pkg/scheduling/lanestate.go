package scheduling

// laneState caches the stock and the best endpoints of a large lane in use. It catches up with the board's changes when
// it is next used, so the cost of a change does not depend on the number of lanes, and unused lanes cost nothing.
type laneState struct {
	reach  *reach
	tree   tournament // of the ready ones, by index in reach.ready
	counts []int32    // requests held there, by index
	sums              // of the ready ones
	seen   uint64     // number of the board's changes applied
	lives  uint64     // how often this memory was reused, so that old pointers to it can be detected
}

// changeLog is the number of changes that the board remembers. A lane that has missed more is recomputed, or fewer if
// that is quicker.
const changeLog = 1024

// maxLanes bounds the cached lanes. Beyond it all are dropped, and those in use are cached again.
const maxLanes = 128

// laneKey identifies a lane of a snapshot: by its reach if requests share it, otherwise by its name.
type laneKey struct {
	shared *reach
	name   string
}

// laneOf returns the up-to-date state of the query's lane, which must be large.
func (b *Board) laneOf(q *Query) *laneState {
	if l := q.state; l != nil && l.lives == q.stateLives {
		l.follow(b)
		return l
	}
	key := laneKey{shared: q.reach}
	if q.confined {
		key = laneKey{name: q.lane}
	}
	l := b.lanes[key]
	if l == nil {
		if len(b.lanes) == maxLanes {
			b.forgetLanes()
		}
		l = &laneState{}
		if n := len(b.spare); n > 0 {
			l, b.spare = b.spare[n-1], b.spare[:n-1]
		}
		l.reach = q.reach
		l.countAnew(b)
		b.lanes[key] = l
	}
	q.state, q.stateLives = l, l.lives
	l.follow(b)
	return l
}

// forgetLanes drops all lanes and keeps their memory for others.
func (b *Board) forgetLanes() {
	for key, l := range b.lanes {
		delete(b.lanes, key)
		l.reach = nil
		l.lives++
		b.spare = append(b.spare, l)
	}
}

func (l *laneState) countAnew(b *Board) {
	l.tree.enter(len(l.reach.ready), b.lot() != nil)
	l.counts = resized(l.counts, len(l.reach.ready))
	l.sums = sums{}
	for i, p := range l.reach.ready {
		s := &b.spots[p]
		l.tree.seat(i, s.leaf())
		l.counts[i] = s.held()
		l.sums.add(s)
	}
	l.tree.play()
	l.seen = b.changes
}

// follow applies the board's changes that the lane has missed.
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
		l.recount(s, l.counts[i], s.held())
		l.counts[i] = s.held()
		l.tree.set(i, s.leaf())
	}
}
