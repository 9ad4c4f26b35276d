package fairqueue

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// AppendState appends all that decides the queue's future from now on, in a form that does not depend on how it came
// about: two queues of one configuration whose states are equal answer the same calls with requests of the same kinds.
// Virtual times are relative to their class's, arrivals and displacements are ranks, ages end at the threshold that
// they are compared with, and a deadline further away than horizon is one that never comes. returning are the
// requests that were popped and may still be given to Requeue. A model check knows by it where it has been.
func (q *FairRequestQueue) AppendState(b []byte, now time.Time, horizon time.Duration, returning ...*Request) []byte {
	s := stateWriter{b: b, now: now, horizon: horizon}
	for r := range q.due.all() {
		s.arrivals = append(s.arrivals, r.seq)
	}
	var promoted []uint64
	for _, t := range q.tiers {
		promoted = append(promoted, t.promoted)
	}
	for _, r := range returning {
		s.arrivals = append(s.arrivals, r.seq)
	}
	slices.Sort(s.arrivals)
	slices.Sort(promoted)
	promoted = slices.Compact(promoted)
	s.number(q.budget.credit)
	for _, t := range q.tiers {
		s.number(int64(t.id))
		s.flag(t.removed)
		s.number(t.deficit)
		s.number(int64(slices.Index(promoted, t.promoted)))
		s.tier(t)
	}
	for _, r := range returning {
		t := q.byID[r.Tier]
		s.number(int64(r.Tier))
		s.text(q.discipline.flowOf(r.Flow))
		s.text(string(r.Lane))
		s.number(int64(r.start - t.class.virtual))
		s.number(int64(r.charged))
		s.earned(q, r)
		s.flag(r.newcomer)
		s.request(t, r)
	}
	return s.b
}

// stateWriter appends numbers and names so that different sequences of them give different bytes.
type stateWriter struct {
	b        []byte
	now      time.Time
	horizon  time.Duration
	arrivals []uint64 // sequences of the requests to describe, in order
}

func (s *stateWriter) number(n int64) { s.b = append(strconv.AppendInt(s.b, n, 36), ' ') }

func (s *stateWriter) text(name string) {
	s.number(int64(len(name)))
	s.b = append(s.b, name...)
}

func (s *stateWriter) flag(is bool) {
	if is {
		s.number(1)
	} else {
		s.number(0)
	}
}

// earned appends which tiers would give back what they have earned by r, and whether its own gets it.
func (s *stateWriter) earned(q *FairRequestQueue, r *Request) {
	for _, t := range q.tiers {
		counts := r.earned.Has(t.id) && q.reloaded < r.charge
		s.flag(counts)
		s.flag(counts && t.reset < r.charge)
	}
}

// tier appends the lanes that are closed and the flows, in the order of the last tie-break of displacement.
func (s *stateWriter) tier(t *tier) {
	var closed []string
	for name, l := range t.class.lanes {
		if l.state != LaneOpen {
			closed = append(closed, string(rune('0'+l.state))+string(name))
		}
	}
	slices.Sort(closed)
	s.number(int64(len(closed)))
	for _, name := range closed {
		s.text(name)
	}
	flows := make([]*flow, 0, t.flows.len())
	displaced := []uint64{0}
	for f := range t.flows.all() {
		flows = append(flows, f)
		displaced = append(displaced, f.shed.last)
	}
	slices.SortFunc(flows, func(f, g *flow) int {
		return cmp.Or(cmp.Compare(f.shed.id, g.shed.id), cmp.Compare(f.key, g.key))
	})
	slices.Sort(displaced)
	displaced = slices.Compact(displaced)
	s.number(int64(len(flows)))
	for _, f := range flows {
		s.text(f.key)
		s.number(int64(slices.Index(displaced, f.shed.last)))
		s.flow(t, f)
	}
}

func (s *stateWriter) flow(t *tier, f *flow) {
	s.number(int64(f.start - t.class.virtual))
	s.number(int64(f.refunded))
	s.flag(f.newcomer)
	s.number(int64(f.weight))
	s.number(int64(f.capacity))
	lanes := slices.SortedFunc(slices.Values(f.lanes), func(a, b *flowLane) int {
		return cmp.Compare(a.lane.name, b.lane.name)
	})
	s.number(int64(len(lanes)))
	for _, l := range lanes {
		s.text(string(l.lane.name))
		s.flag(l.parked)
		s.number(int64(l.line.n))
		for r := l.line.first; r != nil; r = r.next {
			s.request(t, r)
		}
	}
}

// request appends r's rank by arrival, its cost, how long it has waited and how long it may.
func (s *stateWriter) request(t *tier, r *Request) {
	rank, _ := slices.BinarySearch(s.arrivals, r.seq)
	s.number(int64(rank))
	s.number(int64(r.Cost))
	s.number(int64(min(s.now.Sub(r.arrived), t.config.StarvationThreshold)))
	s.number(int64(min(r.Expires().Sub(s.now), s.horizon)))
}
