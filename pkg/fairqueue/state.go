package fairqueue

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// AppendState appends a description of everything that affects the queue's later decisions. Two queues with the same
// configuration and equal descriptions answer the same calls with requests of the same kinds, regardless of their
// histories. Virtual times are relative to their level's, ranks replace arrivals and displacements, ages are cut off at
// the threshold compared with, and deadlines at horizon. returning are the popped requests that may still be requeued.
// Model checkers use it to detect visited states.
func (q *FairRequestQueue) AppendState(b []byte, now time.Time, horizon time.Duration, returning ...*Request) []byte {
	s := stateWriter{b: b, now: now, horizon: horizon}
	if q.shares != nil {
		q.now = now // use is recent at some time
	}
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
		c, charged := q.home(r)
		s.number(int64(c.tier.id))
		s.text(c.config.Name)
		s.flag(charged)
		s.text(c.flowKey(r))
		s.text(string(r.Lane))
		s.number(int64(len(r.also())))
		for _, lane := range r.also() {
			s.text(string(lane))
		}
		s.receipts(c, r)
		s.earned(q, r)
		s.request(c, r)
	}
	return s.b
}

// stateWriter encodes numbers and names. Different sequences of them have different encodings.
type stateWriter struct {
	b        []byte
	now      time.Time
	horizon  time.Duration
	arrivals []uint64 // sequences of the requests to describe, ascending
}

func (s *stateWriter) number(n int64) { s.b = append(strconv.AppendInt(s.b, n, 36), ' ') }

func (s *stateWriter) text(name string) {
	s.number(int64(len(name)))
	s.b = append(s.b, name...)
}

func (s *stateWriter) flag(is bool) { s.number(one(is)) }

// one returns 1 for true and 0 for false.
func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// earned appends, for each tier, whether a refund of r would take back earnings of the tier, and whether the tier has
// been empty since; and the charged cost.
func (s *stateWriter) earned(q *FairRequestQueue, r *Request) {
	x, charged := r.more(), Cost(0)
	for _, t := range q.tiers {
		counts := x.earned.Has(t.id) && q.reloaded < x.charge
		s.flag(counts)
		s.flag(counts && t.reset < x.charge)
		if counts {
			charged = x.charged
		}
	}
	s.number(int64(charged))
}

// receipts appends the receipts of r on its path, as far as the flows are still tracked.
func (s *stateWriter) receipts(c *class, r *Request) {
	for depth, in := 0, &c.siblings; in != nil; depth++ {
		s.text(c.keyAt(r, depth))
		in.discipline.describeReceipt(&in.level, r.receiptOf(int8(depth)), s.number)
		f := in.flows.find(c.keyAt(r, depth))
		if in = nil; f != nil {
			in = f.under
		}
	}
	if in := c.ring; in.shared() {
		in.discipline.describeReceipt(&in.level, r.receiptOf(classDepth), s.number)
	}
}

// tier appends a tier's rings and, if there are several, whose turn is next.
func (s *stateWriter) tier(t *tier) {
	if len(t.rings) > 1 {
		s.number(int64(len(t.rings)))
		s.number(int64(t.next.place))
	}
	for _, r := range t.rings {
		if len(t.rings) > 1 {
			s.text(r.name)
		}
		s.ring(r)
	}
}

// ring appends a ring's classes and, if there are several, the state of their discipline.
func (s *stateWriter) ring(r *ring) {
	s.number(int64(len(r.classes)))
	if r.shared() {
		r.discipline.describe(&r.level, nil, s.number)
	}
	for _, c := range r.classes {
		if r.shared() {
			s.text(c.config.Name)
			s.flag(c.removed)
			r.discipline.describe(&r.level, &c.share, s.number)
		}
		s.class(c)
	}
}

// class appends a class's closed lanes and its flows.
func (s *stateWriter) class(c *class) {
	var closed []string
	for name, l := range c.lanes {
		if l.state != LaneOpen {
			closed = append(closed, string(rune('0'+l.state))+string(name))
		}
	}
	slices.Sort(closed)
	s.number(int64(len(closed)))
	for _, name := range closed {
		s.text(name)
	}
	s.flows(&c.siblings)
}

// flows appends the flows of a level, ordered by the last tie-break of displacement.
func (s *stateWriter) flows(in *siblings) {
	in.discipline.describe(&in.level, nil, s.number)
	flows := make([]*flow, 0, in.flows.len())
	displaced := []uint64{0}
	for f := range in.flows.all() {
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
		s.flow(f)
	}
	if in.discipline.active() {
		s.idle(in)
	}
}

// idle appends the discipline's memory of the flows in which nothing waits.
func (s *stateWriter) idle(in *siblings) {
	idle := slices.SortedFunc(in.flows.idle(), func(f, g *flow) int { return cmp.Compare(f.key, g.key) })
	s.number(int64(len(idle)))
	for _, f := range idle {
		s.text(f.key)
		s.number(int64(f.weight))
		in.discipline.describe(&in.level, &f.share, s.number)
		if f.under != nil {
			s.flows(f.under)
		}
	}
}

// flow appends a flow with its lanes and waiting requests.
func (s *stateWriter) flow(f *flow) {
	f.siblings.discipline.describe(&f.siblings.level, &f.share, s.number)
	s.number(int64(f.weight))
	s.number(int64(f.capacity))
	lanes := slices.SortedFunc(slices.Values(f.lanes), func(a, b *flowLane) int {
		return cmp.Compare(a.lane.name, b.lane.name)
	})
	s.number(int64(len(lanes)))
	for _, l := range lanes {
		s.text(string(l.lane.name))
		s.flag(l.atCap)
		s.number(int64(l.queued))
		for _, r := range slices.SortedFunc(l.line.all(), func(a, b *Request) int { return cmp.Compare(a.seq, b.seq) }) {
			s.request(f.class, r)
		}
	}
	if f.under != nil {
		s.flows(f.under)
	}
}

// request appends r's rank by arrival, its cost, its age, the time that it has left, and its rank in its line.
func (s *stateWriter) request(c *class, r *Request) {
	rank, _ := slices.BinarySearch(s.arrivals, r.seq)
	s.number(int64(rank))
	s.number(int64(r.Cost))
	if c.config.Limits != (ClassLimits{}) && r.Path != nil {
		s.number(int64(r.Path.Prompt.Raw))
		s.number(int64(r.Path.Prompt.Cached))
	}
	q := c.tier.queue
	now := s.now.Sub(q.epoch)
	s.number(int64(min(now-r.arrived, c.tier.config.StarvationThreshold)))
	s.number(int64(min(r.due-now, s.horizon)))
	if q.config.LocalityQuantum > 0 || c.config.Order == Locality {
		s.number(int64(r.turns))
		s.number(int64(max(0, min(r.arrived+r.Within/2-now, s.horizon))))
	}
	if c.order != nil {
		left := r.deadline() - r.arrived
		s.number(int64(r.extra.rank - c.order.rank(now, now+left, r)))
		s.number(int64(c.order.rank(0, left, r)))
	}
}
