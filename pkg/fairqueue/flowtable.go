package fairqueue

import "iter"

// keptFlows is how many flows that have just lost their last waiter keep their place in a class's flowTable, and
// keptUnder in that of the flows under one.
const (
	keptFlows = 1024
	keptUnder = 16
)

// flowTable finds a level's tracked flows by key. A flow that has lost its last waiter often has the next one soon: its
// place in the map is kept for a while, since adding and deleting there costs more than all else that a flow does.
// Nothing but the structure and the key outlives its waiters, unless the discipline wants to know which flows are active:
// then a flow also rests here while it has requests in flight, and is kept with its share.
type flowTable struct {
	known   map[string]*flow // the tracked ones, those at rest, and those kept
	tracked int
	kept    int
	most    int   // that are kept
	first   *flow // of those tracked, in the order in which they began to wait
	last    *flow
	oldest  *flow // of those kept
	newest  *flow
	free    []*flow
}

// place is a flow's place in its flowTable.
type place struct {
	tracked      bool
	resting      bool  // nothing waits, but something is in flight
	older, newer *flow // neighbours among those tracked, or kept
}

func newFlowTable(most int) flowTable { return flowTable{known: map[string]*flow{}, most: most} }

func (t *flowTable) len() int { return t.tracked }

// find is a tracked flow, or nil.
func (t *flowTable) find(key string) *flow {
	if f := t.known[key]; f != nil && f.place.tracked {
		return f
	}
	return nil
}

// all are the tracked flows, in the order in which they began to wait.
func (t *flowTable) all() iter.Seq[*flow] {
	return func(yield func(*flow) bool) {
		for f := t.first; f != nil; f = f.place.newer {
			if !yield(f) {
				return
			}
		}
	}
}

// track begins to track a flow that is not, as made by blank, which is given the capacity of an earlier one's lanes.
func (t *flowTable) track(key string, blank flow) *flow {
	f := t.claim(key, blank)
	f.place = place{tracked: true, older: t.last}
	if t.last != nil {
		t.last.place.newer = f
	} else {
		t.first = f
	}
	t.last = f
	t.tracked++
	return f
}

// claim makes the structure for a flow that is not tracked.
func (t *flowTable) claim(key string, blank flow) *flow {
	f := t.known[key]
	switch {
	case f == nil:
		f = take(&t.free)
		t.known[key] = f
	case !f.place.resting:
		t.unkeep(f)
	}
	blank.key, blank.lanes = key, f.lanes[:0]
	*f = blank
	f.share.flow = f
	return f
}

// rest has the flow known while it has requests in flight.
func (t *flowTable) rest(key string, blank flow) *flow {
	f := t.claim(key, blank)
	f.place = place{resting: true}
	return f
}

// drop ends the tracking of f, which rests as long as it has requests in flight.
func (t *flowTable) drop(f *flow) {
	t.tracked--
	if f.byLane = nil; cap(f.lanes) > fewLanes {
		f.lanes = nil
	}
	unlink(f, &t.first, &t.last)
	if f.inflight > 0 {
		f.place = place{resting: true}
		return
	}
	t.keep(f)
}

// keep keeps the place of f, which is not active any more, for a while.
func (t *flowTable) keep(f *flow) {
	f.under = nil
	f.place = place{older: t.newest}
	if t.newest != nil {
		t.newest.place.newer = f
	} else {
		t.oldest = f
	}
	t.newest = f
	if t.kept++; t.kept > t.most {
		gone := t.oldest
		t.unkeep(gone)
		delete(t.known, gone.key)
		*gone = flow{lanes: gone.lanes}
		if len(t.free) < t.most {
			t.free = append(t.free, gone)
		}
	}
}

func (t *flowTable) unkeep(f *flow) {
	t.kept--
	unlink(f, &t.oldest, &t.newest)
}

// unlink takes f out of a list with these ends.
func unlink(f *flow, first, last **flow) {
	p := f.place
	if p.older != nil {
		p.older.place.newer = p.newer
	} else {
		*first = p.newer
	}
	if p.newer != nil {
		p.newer.place.older = p.older
	} else {
		*last = p.older
	}
}
