package fairqueue

// flow is a tracked flow: one with waiting requests. It is forgotten when the last of them leaves.
// The order of the fields is that of use: what a walk through the share tree looks at lies together.
type flow struct {
	key    string
	tier   *tier
	lanes  []*flowLane        // those with waiting requests; usually one
	byLane map[Lane]*flowLane // the same ones, where there are more than fewLanes
	queued int
	cost   int64 // Σ cost of its waiting requests

	weight Weight
	shed   shedding

	capacity int         // its flowCapacity
	reserves int         // what of it is reserved
	newcomer bool        // goes first among equal tags: NewcomerFirst, and not served since it became backlogged
	start    VirtualTime // where the tags of its heads start; see the package comment
	refunded VirtualTime // how far start may lie behind virtual time, for what was given back
	place    place
}

// fewLanes are found by looking at each.
const fewLanes = 16

// laneOf is the flow's line in a lane; nil when it has none there.
func (f *flow) laneOf(name Lane) *flowLane {
	if f.byLane != nil {
		return f.byLane[name]
	}
	for _, l := range f.lanes {
		if l.lane.name == name {
			return l
		}
	}
	return nil
}

// newest is the flow's request that arrived last.
func (f *flow) newest() *Request {
	var n *Request
	for _, l := range f.lanes {
		if n == nil || n.seq < l.line.last.seq {
			n = l.line.last
		}
	}
	return n
}

// attach puts r into its flow's line, creating what is missing.
func (t *tier) attach(f *flow, r *Request) {
	fl := f.laneOf(r.Lane)
	if fl == nil {
		fl = t.newFlowLane(f, r.Lane)
	}
	r.at = fl
	fl.line.insert(r)
	t.queued++
	f.queued++
	f.cost += int64(r.Cost)
	capped := 0
	if fl.parked {
		capped = 1
	}
	t.class.count(fl.lane, 1, capped)
	if fl.line.first == r {
		fl.tag = t.discipline.tag(f, r)
		t.class.settle(fl)
	}
	t.shed.update(f)
}

// detach takes r out of its flow's line and forgets what is empty.
func (t *tier) detach(r *Request) {
	fl := r.at
	f := fl.flow
	head := fl.line.first == r
	r.at = nil
	fl.line.remove(r)
	t.queued--
	f.queued--
	f.cost -= int64(r.Cost)
	capped := 0
	if fl.parked {
		capped = -1
	}
	t.class.count(fl.lane, -1, capped)
	if head {
		if next := fl.line.first; next != nil {
			fl.tag = t.discipline.tag(f, next)
		}
		t.class.settle(fl)
	}
	t.shed.update(f)
	if fl.line.n == 0 {
		t.dropFlowLane(fl)
		if f.queued == 0 {
			t.dropFlow(f)
		}
	}
}

// retag computes the tags of all heads of f anew, after its start or weight has changed.
func (t *tier) retag(f *flow) {
	for _, fl := range f.lanes {
		fl.tag = t.discipline.tag(f, fl.line.first)
		t.class.settle(fl)
	}
}

// newFlow begins to track a flow of tier t.
func (q *FairRequestQueue) newFlow(t *tier, key string) *flow {
	capacity := q.config.flowCapacity(key)
	f := t.flows.track(key, flow{
		tier: t, weight: q.config.weight(key), capacity: capacity, reserves: q.reserves(t, capacity),
	})
	t.discipline.begin(&t.class, f)
	t.reserved += f.reserves
	t.weights += f.weight
	t.shed.track(f)
	return f
}

func (t *tier) dropFlow(f *flow) {
	t.reserved -= f.reserves
	t.weights -= f.weight
	t.flows.drop(f)
}

func (t *tier) newFlowLane(f *flow, name Lane) *flowLane {
	cl := t.class.lanes[name]
	if cl == nil {
		cl = take(&t.freeLanes)
		flows, ages := cl.flows, cl.ages
		*cl = classLane{class: &t.class, name: name, flows: flows, ages: ages}
		cl.busy.of, cl.oldest.of = cl, cl
		t.class.lanes[name] = cl
	}
	fl := take(&t.freeFlowLanes)
	*fl = flowLane{flow: f, lane: cl, place: len(f.lanes)}
	fl.age.of = fl
	f.lanes = append(f.lanes, fl)
	if f.byLane != nil {
		f.byLane[name] = fl
	} else if len(f.lanes) > fewLanes {
		f.byLane = map[Lane]*flowLane{}
		for _, l := range f.lanes {
			f.byLane[l.lane.name] = l
		}
	}
	return fl
}

func (t *tier) dropFlowLane(fl *flowLane) {
	f := fl.flow
	last := len(f.lanes) - 1
	f.lanes[fl.place] = f.lanes[last]
	f.lanes[fl.place].place = fl.place
	f.lanes[last] = nil
	f.lanes = f.lanes[:last]
	delete(f.byLane, fl.lane.name)
	if cl := fl.lane; cl.queued == 0 {
		delete(t.class.lanes, cl.name)
		if cl.flows.small() && cl.ages.small() && len(t.freeLanes) < keptLanes {
			t.freeLanes = append(t.freeLanes, cl)
		}
	}
	fl.flow, fl.lane = nil, nil
	if len(t.freeFlowLanes) < keptFlows {
		t.freeFlowLanes = append(t.freeFlowLanes, fl)
	}
}

// keptLanes is how many lanes without waiters are kept for the next ones, each with small heaps.
const keptLanes = 64

// take is the last of a free list, or a new one.
func take[T any](free *[]*T) *T {
	if n := len(*free); n > 0 {
		x := (*free)[n-1]
		*free = (*free)[:n-1]
		return x
	}
	return new(T)
}
