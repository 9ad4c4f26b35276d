package fairqueue

import "iter"

// keptFlows is the number of flows that keep their place in a class's flowTable after they have lost their last waiter;
// keptUnder is the same for the flows under one.
const (
	keptFlows = 1024
	keptUnder = 16
)

// flowTable maps keys to a level's tracked flows. A flow often gets its next waiter soon after losing its last one, so
// its map entry is kept for a while: adding and deleting it is the dearest operation of a flow. Only the structure and
// the key outlive a flow's waiters, unless the discipline needs to know which flows are active: then a flow also rests
// here while it has requests in flight, and is kept with its share.
type flowTable struct {
	known   map[string]*flow `graph:"key"` // tracked, resting and kept flows
	tracked int
	kept    int
	most    int   // the largest number kept
	first   *flow // of the tracked flows, in the order in which they began to wait
	last    *flow
	oldest  *flow // of the kept flows
	newest  *flow
	free    []*flow
}

// tablePosition is a flow's position in its flowTable.
type tablePosition struct {
	older, newer *flow // neighbours among the tracked, or the kept, flows
}

func newFlowTable(most int) flowTable { return flowTable{known: map[string]*flow{}, most: most} }

func (t *flowTable) len() int { return t.tracked }

// find returns a tracked flow, or nil.
func (t *flowTable) find(key string) *flow {
	if f := t.known[key]; f != nil && f.tracked {
		return f
	}
	return nil
}

// all iterates over the tracked flows, in the order in which they began to wait.
func (t *flowTable) all() iter.Seq[*flow] {
	return func(yield func(*flow) bool) {
		for f := t.first; f != nil; f = f.position.newer {
			if !yield(f) {
				return
			}
		}
	}
}

// idle iterates over the known flows in which nothing waits, in no order.
func (t *flowTable) idle() iter.Seq[*flow] {
	return func(yield func(*flow) bool) {
		for _, f := range t.known {
			if !f.tracked && !yield(f) {
				return
			}
		}
	}
}

// track starts tracking a flow that was claimed.
func (t *flowTable) track(f *flow) {
	f.tracked, f.resting, f.position = true, false, tablePosition{older: t.last}
	if t.last != nil {
		t.last.position.newer = f
	} else {
		t.first = f
	}
	t.last = f
	t.tracked++
}

// claim returns the untracked flow with this key: the known flow f, or a blank one if f is nil. The caller must then
// call track or rest.
func (t *flowTable) claim(key string, f *flow) *flow {
	switch {
	case f == nil:
		f = take(&t.free)
		f.key = key
		t.known[key] = f
	case !f.resting:
		t.unkeep(f)
	}
	return f
}

// rest keeps a claimed flow known while it has requests in flight.
func (t *flowTable) rest(f *flow) { f.tracked, f.resting, f.position = false, true, tablePosition{} }

// drop stops tracking f, which rests while it has requests in flight.
func (t *flowTable) drop(f *flow) {
	t.tracked--
	if f.byLane = nil; cap(f.lanes) > fewLanes {
		f.lanes = nil
	}
	unlink(f, &t.first, &t.last)
	if f.inflight > 0 {
		t.rest(f)
		return
	}
	t.keep(f)
}

// keep keeps the entry of f, which is no longer active, for a while.
func (t *flowTable) keep(f *flow) {
	f.under = nil
	f.tracked, f.resting, f.position = false, false, tablePosition{older: t.newest}
	if t.newest != nil {
		t.newest.position.newer = f
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

// unlink removes f from a list with these ends.
func unlink(f *flow, first, last **flow) {
	p := f.position
	if p.older != nil {
		p.older.position.newer = p.newer
	} else {
		*first = p.newer
	}
	if p.newer != nil {
		p.newer.position.older = p.older
	} else {
		*last = p.older
	}
}
