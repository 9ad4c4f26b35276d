package fairqueue

import (
	"slices"
	"time"
)

// oracle is a second implementation of the fair request queue, written from the design without data structures: one
// slice of waiters in order of arrival, searched for every question. It has no rollover, so tests use it only with
// costs whose virtual times stay small.
type oracle struct {
	cfg           Config
	tiers         []*oracleTier // highest first
	waiting       []*waiter     // by arrival
	popped        []*waiter
	arrivals      int
	tracked       int // flows ever tracked
	promotions    int
	displacements int
	credit        int64     // of promotions, in millionths
	now           time.Time // of the last pop
	turn          *waiter   // the one whose turn is taken by the one that goes
	least         int64     // and its tag
	sharing                 // fairshare's
}

type oracleTier struct {
	id       int
	cfg      TierConfig
	removed  bool
	virtual  int64
	deficit  int64
	promoted int // when it was last promoted
	flows    map[string]*oracleFlow
	past     map[string]*oracleFlow // wfq: those without waiters, as they were when the last one left
	weights  map[string]Weight      // of flows
	lanes    map[Lane]LaneState     // closed ones
	counters                        // vtc's
	heavy                           // fairshare's
}

type oracleFlow struct {
	places    map[Lane]*place // wfq's, by lane
	newcomer  bool            // goes first among equal tags
	tracked   int
	displaced int           // when it was last displaced; 0: never
	parked    map[Lane]bool // lanes in which it is parked
}

type waiter struct {
	r        *Request
	tier     *oracleTier
	flow     string
	seq      int
	arrived  time.Time
	expires  time.Time
	start    int64                 // its flow's start when it was popped
	charged  int64                 // what it added
	newcomer bool                  // and whether that was a newcomer
	cost     int64                 // what its tier was charged
	weight   int64                 // its flow's when it went
	shared   []*oracleTier         // the tiers that shared it
	weights  []int64               // and their weights
	earned   map[*oracleTier]int64 // by its pop, where they were not reset since
	use                            // fairshare's
	byOwn    int                   // how often its flow has overtaken it
	byOther  int                   // and another, in its turn
}

func newOracle(cfg Config) *oracle {
	o := &oracle{cfg: cfg}
	if cfg.PromotionBudget > 0 { // a budget of 0 is none at all
		o.credit = 1_000_000
	}
	for i, tc := range cfg.Tiers {
		o.tiers = append(o.tiers, newOracleTier(i, tc))
	}
	return o
}

func newOracleTier(id int, cfg TierConfig) *oracleTier {
	return &oracleTier{id: id, cfg: cfg, flows: map[string]*oracleFlow{}, past: map[string]*oracleFlow{}, weights: map[string]Weight{}, lanes: map[Lane]LaneState{}, counters: counters{reached: map[Lane]int64{}, fronts: map[Lane]int64{}}, heavy: heavy{strangers: map[Lane]int64{}, raises: map[Lane]int64{}}}
}

func (o *oracle) key(flow string) string {
	if o.cfg.Discipline == OneFlow {
		return ""
	}
	return flow
}

// of returns the waiters for which is holds, by arrival.
func (o *oracle) of(is func(w *waiter) bool) (some []*waiter) {
	for _, w := range o.waiting {
		if is(w) {
			some = append(some, w)
		}
	}
	return some
}

func (o *oracle) ofTier(t *oracleTier) []*waiter {
	return o.of(func(w *waiter) bool { return w.tier == t })
}

func (o *oracle) ofFlow(t *oracleTier, key string) []*waiter {
	return o.of(func(w *waiter) bool { return w.tier == t && w.flow == key })
}

// enter adds w in order of arrival.
func (o *oracle) enter(w *waiter) {
	at := len(o.waiting)
	for at > 0 && o.waiting[at-1].seq > w.seq {
		at--
	}
	o.waiting = slices.Insert(o.waiting, at, w)
}

// leave removes w and forgets flows without waiters.
func (o *oracle) leave(w *waiter) {
	o.waiting = slices.DeleteFunc(o.waiting, func(v *waiter) bool { return v == w })
	t, f, lane := w.tier, w.tier.flows[w.flow], w.r.Lane
	inLane := func(v *waiter) bool { return v.tier == t && v.r.Lane == lane }
	if len(o.of(inLane)) == 0 {
		delete(t.lanes, lane)
	}
	if len(o.of(func(v *waiter) bool { return inLane(v) && v.flow == w.flow })) == 0 {
		delete(f.parked, lane)
	}
	if len(o.ofFlow(t, w.flow)) == 0 {
		t.past[w.flow] = f
		delete(t.flows, w.flow)
	}
	o.rests(t, w.flow)
	if len(o.ofTier(t)) == 0 {
		t.deficit = 0
		for _, p := range o.popped {
			delete(p.earned, t)
		}
	}
}

func (o *oracle) track(t *oracleTier, key string) *oracleFlow {
	f := t.flows[key]
	if f == nil {
		o.tracked++
		f = &oracleFlow{
			places: map[Lane]*place{}, newcomer: o.cfg.TieBreak == NewcomerFirst, tracked: o.tracked,
			parked: map[Lane]bool{},
		}
		if old := t.past[key]; old != nil {
			f.places = old.places
		}
		t.flows[key] = f
	}
	return f
}

func (o *oracle) push(now time.Time, r *Request) (pushed, displaced *waiter, err error) {
	t := o.arrivalTier(r.Tier)
	w := &waiter{r: r, tier: t, flow: o.key(r.Flow), arrived: now}
	if displaced, err = o.admit(w); err != nil {
		return nil, nil, err
	}
	if displaced != nil {
		o.leave(displaced)
	}
	o.begins(t)
	o.starts(now)
	o.weigh(w)
	o.track(t, w.flow)
	if o.vtc() {
		o.joins(w)
	} else {
		o.begin(w)
	}
	o.arrivals++
	w.seq = o.arrivals
	ttl := o.cfg.QueueTTL
	if t.cfg.QueueTimeout > 0 {
		ttl = t.cfg.QueueTimeout
	}
	w.expires = now.Add(ttl)
	if own := now.Add(r.Within); r.Within != 0 && own.Before(w.expires) {
		w.expires = own
	}
	o.enter(w)
	return w, displaced, nil
}

// arrivalTier returns the tier with an identifier, or the lowest one that accepts arrivals.
func (o *oracle) arrivalTier(id int) (t *oracleTier) {
	for _, u := range o.tiers {
		if !u.removed {
			if u.id == id {
				return u
			}
			t = u
		}
	}
	return t
}

// requeue puts a popped waiter back and refunds its flow and its tier.
func (o *oracle) requeue(w *waiter) {
	delete(o.flying, w)
	o.begins(w.tier)
	o.weigh(w)
	f := o.track(w.tier, w.flow)
	if o.vtc() {
		o.recharge(w, 0, false)
		o.joins(w)
		o.refundTier(w)
		o.enter(w)
		return
	}
	o.begin(w)
	p := f.place(w.r.Lane)
	p.start -= w.charged
	p.floor = min(p.floor, p.start)
	p.refunded += w.charged
	if p.start == w.start {
		f.newcomer = w.newcomer
	}
	o.elsewhere(w, f, -w.charged)
	o.refundTier(w)
	o.enter(w)
}

// increment returns cost over weight with 20 binary digits, rounded down, but at least one unit.
func (o *oracle) increment(w *waiter) int64 {
	if o.cfg.Discipline == OneFlow {
		return 0 // the order of arrival
	}
	c := int64(w.r.Cost)
	return max(1, c*(1<<20)*1_000_000/int64(o.weight(w.tier, w.flow)))
}

// head returns the tier's next request: the one with the least finish tag among the first requests of each flow in each
// open lane.
func (o *oracle) head(t *oracleTier) (head *waiter, tag int64) { return o.headIn(t, LaneOpen) }

// headIn is head for lanes in these states.
func (o *oracle) headIn(t *oracleTier, states ...LaneState) (head *waiter, tag int64) {
	type line struct {
		flow string
		lane Lane
	}
	seen := map[line]bool{}
	for _, w := range o.ofTier(t) {
		if l := (line{w.flow, w.r.Lane}); seen[l] || !slices.Contains(states, t.lanes[w.r.Lane]) || t.flows[w.flow].parked[w.r.Lane] {
			continue
		} else {
			seen[l] = true
		}
		finish := t.flows[w.flow].place(w.r.Lane).start + o.increment(w)
		if o.vtc() {
			finish = o.tagOf(w)
		}
		if head == nil || finish < tag || finish == tag && t.flows[w.flow].newcomer && !t.flows[head.flow].newcomer {
			head, tag = w, finish
		}
	}
	return head, tag
}

// pop charges the flow of w, a head, and removes w.
func (o *oracle) pop(w *waiter) {
	f := w.tier.flows[w.flow]
	if o.vtc() {
		o.popByCounter(w)
		o.leave(w)
		return
	}
	o.popByFinish(w, f)
	o.leave(w)
}

// expire removes the expired waiters, the earliest first.
func (o *oracle) expire(now time.Time) (expired []*waiter) {
	expired = o.of(func(w *waiter) bool { return !now.Before(w.expires) })
	slices.SortStableFunc(expired, func(a, b *waiter) int { return a.expires.Compare(b.expires) })
	for _, w := range expired {
		o.leave(w)
	}
	return expired
}

// weight returns a flow's weight without a role.
func (c *Config) weight(flow string) Weight {
	if w, ok := c.Weights[flow]; ok {
		return w
	}
	return WeightOne
}
