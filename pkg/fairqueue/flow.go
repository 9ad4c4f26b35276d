package fairqueue

import "iter"

// flow is a tracked flow: it, or a flow under it, has waiting requests. It is forgotten when the last of them leaves.
// It has four cache lines, and with thousands of flows each line costs a miss: every push and pop uses the first two,
// the discipline the third, and a walk through the share tree the third and the fourth. TestFlowFitsItsSize checks the
// size.
type flow struct {
	class    *class
	siblings *siblings          // the siblings that it belongs to
	above    *flow              // the flow above it; nil if it is the class's own
	under    *siblings          // the flows under it; nil if requests wait in it
	lanes    []*flowLane        // its lanes with waiting requests; usually one
	byLane   map[Lane]*flowLane // the same lanes, if there are more than fewLanes

	cost     int64 // Σ cost of its waiting requests
	capacity int   // its flowCapacity
	inflight int32 // requests in flight, if the discipline needs them
	depth    int8  // 0 for the class's own
	newcomer bool  // goes first among equal tags: NewcomerFirst, and not served since it became backlogged
	tracked  bool
	resting  bool // no request waits, but some are in flight
	position tablePosition

	share
	queued   int
	shed     shedding
	reserves int32  // the part of capacity that is reserved, for the class's own flows
	prepared uint32 // number of the configuration that set its weight and its capacity; 0: none
	key      string `graph:"key"`
}

// fewLanes is the largest number of lanes that are searched linearly.
const fewLanes = 16

// laneOf returns the flow's part of a lane; nil if no request waits there.
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

// newest returns the latest arrival of a flow in which requests wait.
func (f *flow) newest() *Request {
	var n *Request
	for _, l := range f.lanes {
		if n == nil || n.seq < l.line.newest.seq {
			n = l.line.newest
		}
	}
	return n
}

// known returns the class's own flow that r belongs to, whether it is tracked or not; nil if it is not known.
func (c *class) known(r *Request) *flow { return c.flows.known[c.flowKey(r)] }

// findIn returns the flow that r would wait in, f or a flow under it; nil if it is not tracked. f is the result of
// known.
func (c *class) findIn(f *flow, r *Request) *flow {
	if f == nil || !f.tracked {
		return nil
	}
	for f != nil && f.under != nil {
		f = f.under.flows.find(c.keyAt(r, int(f.depth)+1))
	}
	return f
}

// flowKey returns the key of the class's own flow that r belongs to.
func (c *class) flowKey(r *Request) string {
	if _, one := c.discipline.(oneFlow); one {
		return ""
	}
	return r.Flow
}

// keyAt returns the key of r's flow at a depth, 0 being the class's own.
func (c *class) keyAt(r *Request, depth int) string {
	switch {
	case depth == 0:
		return c.flowKey(r)
	case r.Path != nil && depth <= len(r.Path.Under):
		return r.Path.Under[depth-1]
	default:
		return ""
	}
}

// track starts tracking the flow of r and any untracked flows above it. known is the result of class.known.
func (q *FairRequestQueue) track(c *class, r *Request, known *flow) *flow {
	if in := c.ring; c.queued == 0 && in.shared() {
		in.discipline.begin(&in.level, &c.share)
	}
	var above *flow
	key := c.flowKey(r)
	for depth := 1; depth < q.config.levels(); depth++ {
		f := known
		if f == nil || !f.tracked {
			f = q.newFlow(c, above, key, known, r)
		}
		above, key = f, c.keyAt(r, depth)
		known = f.under.flows.known[key]
	}
	return q.newFlow(c, above, key, known, r)
}

func (q *FairRequestQueue) newFlow(c *class, above *flow, key string, known *flow, r *Request) *flow {
	in := siblingsUnder(c, above)
	f := in.flows.claim(key, known)
	q.prepare(f, c, above, key, r)
	in.flows.track(f)
	in.discipline.begin(&in.level, &f.share)
	c.tier.reserved += int(f.reserves)
	in.weights += f.weight
	in.shed.track(f)
	return f
}

// siblingsUnder returns the siblings of a flow of the class, or of one under another flow.
func siblingsUnder(c *class, above *flow) *siblings {
	if above != nil {
		return above.under
	}
	return &c.siblings
}

// prepare gives the idle f with this key its place in the class and its weight with r. The discipline's state of f
// stays if the discipline needs to know which flows are active.
func (q *FairRequestQueue) prepare(f *flow, c *class, above *flow, key string, r *Request) {
	f.class, f.siblings, f.above = c, siblingsUnder(c, above), above
	if !q.active {
		f.share = share{}
	}
	f.share.flow = f
	switch {
	case above == nil && q.active && f.prepared == q.configured && len(q.config.Roles) == 0: // it was here before
	case above == nil:
		f.weight, f.capacity = q.config.weightWith(0, key, r), q.config.flowCapacity(key)
		f.reserves, f.prepared = int32(q.reserves(c.tier, f.capacity)), q.configured
	default:
		f.depth = above.depth + 1
		f.weight = q.config.weightWith(int(f.depth), key, r)
	}
	if f.under == nil && int(f.depth) < q.config.levels()-1 {
		f.under = c.siblings.below()
	}
}

// leafFlows iterates over the flows in which requests wait.
func (s *siblings) leafFlows() iter.Seq[*flow] {
	return func(yield func(*flow) bool) {
		for f := range s.flows.all() {
			if f.under == nil {
				if !yield(f) {
					return
				}
				continue
			}
			for g := range f.under.leafFlows() {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// below returns empty siblings for the flows under one of these flows.
func (s *siblings) below() *siblings {
	below := &siblings{level: level{discipline: s.discipline, shares: s.shares}, flows: newFlowTable(keptUnder)}
	below.newcomerFirst, below.shed.enabled = s.newcomerFirst, s.shed.enabled
	return below
}

// drop stops tracking f, which has lost its last waiter.
func (f *flow) drop() {
	f.class.tier.reserved -= int(f.reserves)
	f.siblings.weights -= f.weight
	f.siblings.flows.drop(f)
	if f.inflight == 0 {
		f.siblings.discipline.end(&f.siblings.level, &f.share)
	}
}
