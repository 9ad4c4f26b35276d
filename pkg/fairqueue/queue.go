package fairqueue

import "time"

// FairRequestQueue holds the waiting requests. It is not safe for concurrent use: its owner has a lock.
type FairRequestQueue struct {
	config        Config
	now           time.Time        // the last that it was told
	active        bool             // the flows' discipline wants to know which are active
	changes       uint64           // how often anybody came, went, or could go no more: what ends a Candidate
	tiers         []*tier          // by rank, highest first
	byID          [maxTiers]*tier  // by stable identifier
	names         map[string]*tier // those that take arrivals
	top           *tier            // the highest that takes arrivals
	queued        int
	arrivals      uint64 // the sequence of the last arrival
	promotions    uint64
	displacements uint64
	charges       uint64 // of weighted tiers: their number,
	reloaded      uint64 // and that at the last reload
	budget        budget
	due           deadlines
	epoch         time.Time // the first now; deadlines are kept relative to it
}

// New is an empty queue. The tiers of cfg get the identifiers 0, 1, …, highest first.
func New(cfg Config) (*FairRequestQueue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q := &FairRequestQueue{config: cfg, names: map[string]*tier{}, active: cfg.Discipline.implementation().active()}
	q.budget = newBudget(cfg.PromotionBudget)
	for i, tc := range cfg.Tiers {
		t := newTier(q, i, tc)
		q.byID[i] = t
		q.names[tc.Name] = t
		q.tiers = append(q.tiers, t)
	}
	q.arrange()
	return q, nil
}

// arrange derives what depends on the order of the tiers.
func (q *FairRequestQueue) arrange() {
	q.top = nil
	for rank, t := range q.tiers {
		t.rank = rank
		if q.top == nil && !t.removed {
			q.top = t
		}
		for _, c := range t.classes {
			c.shed.enabled = q.config.CapacityMode == Shared
			c.newcomerFirst = q.config.TieBreak == NewcomerFirst
			c.guard(q.config.TierMode == Strict && rank > 0 && t.config.StarvationThreshold > 0)
		}
	}
}

// Len is the number of waiting requests.
func (q *FairRequestQueue) Len() int { return q.queued }

// Flows is the number of tracked flows: those with waiting requests.
func (q *FairRequestQueue) Flows() int {
	n := 0
	for _, t := range q.tiers {
		for _, c := range t.classes {
			n += c.flows.len()
		}
	}
	return n
}

// tierOf is the tier of an identifier; the lowest one that takes arrivals when there is none.
func (q *FairRequestQueue) tierOf(id int) *tier {
	if id >= 0 && id < maxTiers && q.byID[id] != nil && !q.byID[id].removed {
		return q.byID[id]
	}
	for i := len(q.tiers) - 1; ; i-- {
		if !q.tiers[i].removed {
			return q.tiers[i]
		}
	}
}

// Push queues r, or refuses it with ErrTooManyFlows or ErrInsufficientFlowCapacity and changes nothing. In shared
// mode it may push another request out to make room: that one has left the queue when Push returns.
func (q *FairRequestQueue) Push(now time.Time, r *Request) (displaced *Request, err error) {
	if r.at != nil {
		panic("fairqueue: Push of a request that is queued")
	}
	t := q.tierOf(r.Tier)
	r.Tier = t.id
	r.Cost = r.Cost.clamp()
	c := t.classOf(r)
	q.now = now
	f := c.find(r)
	if displaced, err = q.admit(c, f, r); err != nil {
		return nil, err
	}
	if displaced != nil {
		q.Remove(displaced)
		f = c.find(r) // it may have been the flow's last
	}
	if f == nil {
		f = q.track(c, r)
	}
	q.arrivals++
	r.seq = q.arrivals
	r.arrived = now
	r.ttl = t.ttl(&q.config)
	q.enter(c, f, r)
	return displaced, nil
}

// Requeue takes back a popped request whose release came to nothing: it keeps its arrival and its deadline, no limit
// applies to it, the charges of its flow and its tier are refunded, and virtual time stays.
func (q *FairRequestQueue) Requeue(r *Request) {
	if r.at != nil || r.seq == 0 {
		panic("fairqueue: Requeue of a request that was not popped")
	}
	t := q.byID[r.Tier]
	if t == nil {
		t = q.tierOf(r.Tier)
		r.Tier = t.id
	}
	c := t.classOf(r)
	f := c.find(r)
	if f == nil {
		f = q.track(c, r)
	}
	q.returned(f, r)
	c.refund(f, r)
	q.refundTier(t, r)
	q.enter(c, f, r)
}

func (q *FairRequestQueue) enter(c *class, f *flow, r *Request) {
	if q.epoch.IsZero() {
		q.epoch = r.arrived
	}
	r.due = r.arrived.Sub(q.epoch) + r.ttl
	if !r.Deadline.IsZero() {
		r.due = min(r.due, r.Deadline.Sub(q.epoch))
	}
	q.changes++
	q.queued++
	q.rank(c, r)
	c.attach(f, r)
	q.due.push(r)
}

// rank computes r's place in the order of its class's lines.
func (q *FairRequestQueue) rank(c *class, r *Request) {
	if c.order != nil {
		r.more().rank = c.order.rank(r.arrived.Sub(q.epoch), r)
	} else if r.extra != nil {
		r.extra.rank = 0
	}
}

// Remove takes a waiting request out, and its place is free at once. It says whether the request was waiting.
func (q *FairRequestQueue) Remove(r *Request) bool {
	if r.at == nil {
		return false
	}
	c := r.at.flow.class
	q.changes++
	q.queued--
	q.due.remove(r)
	c.detach(r)
	q.emptied(c)
	return true
}

// MayBypass reports whether r, an arrival, may go without waiting, as far as the queue has a say: nobody who could go
// waits in its class or a higher tier (weighted tiers: in any), and no starved head that the budget lets go. promote is
// Admit.Promote. Where only a starved head stands in the way, starved is Candidate.Starved of it: if its lane turns out
// to be full, close that and ask again.
func (q *FairRequestQueue) MayBypass(now time.Time, r *Request, promote bool) (may bool, starved *Request) {
	if q.queued == 0 {
		return true, nil
	}
	arrival := q.tierOf(r.Tier)
	for _, t := range q.tiers {
		if q.config.TierMode == Strict && t.rank >= arrival.rank {
			break
		}
		if t.couldGo() > 0 {
			return false, nil
		}
	}
	if arrival.classOf(r).couldGo() > 0 {
		return false, nil
	}
	if promote {
		if t := q.starvedTier(now, nil); t != nil {
			return false, t.oldest()
		}
	}
	return true, nil
}

// emptied resets what a tier without waiters does not keep: what it is owed by the other tiers, and owes them. A class
// that drains is gone with its last waiter.
func (q *FairRequestQueue) emptied(c *class) {
	t := c.tier
	if t.queued == 0 {
		t.deficit, t.reset = 0, q.charges
	}
	if c.removed && c.queued == 0 && c.inflight == 0 {
		t.dropClass(c)
	}
}
