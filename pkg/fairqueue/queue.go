package fairqueue

import "time"

// FairRequestQueue holds the waiting requests. It is not safe for concurrent use: its owner has a lock.
type FairRequestQueue struct {
	config        Config
	now           time.Time        // the latest time passed to it
	active        bool             // the flows' discipline needs to know which flows are active
	bypasses      bool             // and charges requests that do not wait
	guarded       bool             // some tier has a starvation threshold that counts
	changes       uint64           // rises when a request is pushed or removed, or can no longer go: Candidates are invalid
	tiers         []*tier          // by rank, highest first
	byID          [maxTiers]*tier  // by stable identifier
	names         map[string]*tier // those that accept arrivals
	top           *tier            // the highest that accepts arrivals
	queued        int
	arrivals      uint64 // the sequence of the last arrival
	promotions    uint64
	displacements uint64
	charges       uint64 // number of charges of weighted tiers
	configured    uint32 // the number of the configuration, from 1
	reloaded      uint64 // the value of charges when weights, or the set of tiers, last may have changed
	budget        budget
	attained      *attained   // with VTC and FairShare: the service that flows have attained lately
	shares        *fairShares // with FairShare
	inflight      int         // requests in flight
	arrivedSum    uint64      // Σ arrived of the waiting requests, which rolls over
	due           deadlines
	awaiting      map[Lane]int // the number of flows that await room in a lane, if there are any
	epoch         time.Time    // the first now; deadlines are stored relative to it
	event         event        // the last time that was made relative to it
}

// New returns an empty queue. The tiers of cfg get the identifiers 0, 1, …, highest first.
func New(cfg Config) (*FairRequestQueue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	among := cfg.Discipline.implementation()
	q := &FairRequestQueue{
		config: cfg, configured: 1, names: map[string]*tier{}, active: among.active(), bypasses: among.chargesBypasses(), awaiting: map[Lane]int{},
	}
	q.budget = newBudget(cfg.PromotionBudget)
	if cfg.Discipline == VTC || cfg.Discipline == FairShare {
		q.attained = new(attained)
	}
	if cfg.Discipline == FairShare {
		q.shares = &fairShares{queue: q}
	}
	for i, tc := range cfg.Tiers {
		t := newTier(q, i, tc)
		q.byID[i] = t
		q.names[tc.Name] = t
		q.tiers = append(q.tiers, t)
	}
	q.rerank()
	return q, nil
}

// rerank derives the values that depend on the order of the tiers.
func (q *FairRequestQueue) rerank() {
	q.top, q.guarded = nil, false
	for rank, t := range q.tiers {
		t.rank = rank
		if q.top == nil && !t.removed {
			q.top = t
		}
		for _, c := range t.classes {
			c.shed.enabled = q.config.CapacityMode == Shared
			c.newcomerFirst = q.config.TieBreak == NewcomerFirst
			c.guard(q.config.TierMode == Strict && rank > 0 && t.config.StarvationThreshold > 0)
			q.guarded = q.guarded || c.guarded
		}
	}
}

// Len returns the number of waiting requests.
func (q *FairRequestQueue) Len() int { return q.queued }

// Guarded reports whether some tier has a starvation threshold that counts: otherwise no head is ever promoted.
func (q *FairRequestQueue) Guarded() bool { return q.guarded }

// Flows returns the number of tracked flows, which are those with waiting requests.
func (q *FairRequestQueue) Flows() int {
	n := 0
	for _, t := range q.tiers {
		for _, c := range t.classes {
			n += c.flows.len()
		}
	}
	return n
}

// AverageWait returns the mean time that the waiting requests have waited at now; 0 if none waits.
func (q *FairRequestQueue) AverageWait(now time.Time) time.Duration {
	if q.queued == 0 {
		return 0
	}
	return time.Duration(uint64(q.queued)*uint64(q.Since(now))-q.arrivedSum) / time.Duration(q.queued)
}

// tierOf returns the tier with an identifier, or the lowest one that accepts arrivals if there is none.
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

// Push queues r, or rejects it with ErrTooManyFlows or ErrInsufficientFlowCapacity and changes nothing. In shared mode
// it may displace another request to make room: that one has left the queue when Push returns.
func (q *FairRequestQueue) Push(now time.Time, r *Request) (displaced *Request, err error) {
	if r.Queued() {
		panic("fairqueue: Push of a request that is queued")
	}
	t := q.tierOf(r.Tier)
	r.Tier = t.id
	r.Cost = r.Cost.clamp()
	c := t.classOf(r)
	q.now = now
	known := c.known(r)
	f := c.findIn(known, r)
	if displaced, err = q.makeRoom(c, f, r); err != nil {
		return nil, err
	}
	if displaced != nil {
		q.Remove(displaced)
		known = c.known(r) // displaced may have been the flow's last
		f = c.findIn(known, r)
	}
	if f == nil {
		f = q.track(c, r, known)
	} else {
		q.weigh(f, r)
	}
	q.arrivals++
	r.seq = q.arrivals
	q.setDue(now, r, t.ttl(&q.config))
	q.enqueue(c, f, r)
	return displaced, nil
}

// Requeue puts back a popped request whose release is undone. It keeps its arrival and its deadline, and no limit
// applies. The charges of its flow, its class and its tier are refunded; virtual time does not change. It returns to
// its former class, even if that is draining. If that class is gone, the request joins the class that it names, without
// a refund there.
func (q *FairRequestQueue) Requeue(r *Request) {
	if r.Queued() || r.seq == 0 {
		panic("fairqueue: Requeue of a request that was not popped")
	}
	c, known := q.home(r)
	r.Tier = c.tier.id
	own := c.known(r)
	f := c.findIn(own, r)
	if f == nil {
		f = q.track(c, r, own)
	} else {
		q.weigh(f, r)
	}
	if known {
		q.returned(f, r)
		c.refund(f, r)
	} else {
		q.landed(r) // in a class that is gone
	}
	q.correctTier(r, 0)
	q.enqueue(c, f, r)
}

// home returns the class to which the popped r would return, and whether that class has charged it.
func (q *FairRequestQueue) home(r *Request) (c *class, charged bool) {
	c = r.chargedTo()
	if q.known(c) {
		return c, true
	}
	t := q.byID[r.Tier]
	if t == nil || c != nil && c.tier != t {
		t = q.tierOf(-1) // its tier is gone, even if another tier has its identifier by now
	}
	return t.classOf(r), false
}

// known reports whether a class is still in its tier, and its tier in the queue.
func (q *FairRequestQueue) known(c *class) bool {
	return c != nil && !c.gone && q.byID[c.tier.id] == c.tier
}

func (q *FairRequestQueue) enqueue(c *class, f *flow, r *Request) {
	if q.shares != nil {
		q.shares.stirs(true)
	}
	q.changes++
	q.queued++
	q.arrivedSum += uint64(r.arrived)
	q.rank(c, r)
	c.attach(f, r)
	q.due.push(r)
}

// rank computes r's rank in the order of its class's lines.
func (q *FairRequestQueue) rank(c *class, r *Request) {
	if c.order != nil {
		r.more().rank = c.order.rank(r.arrived, r.deadline(), r)
	} else if r.extra != nil {
		r.extra.rank = 0
	}
}

// Remove removes a waiting request, whose place is free at once, and reports whether it was waiting.
func (q *FairRequestQueue) Remove(r *Request) bool {
	if !r.Queued() {
		return false
	}
	c := r.flowLane.flow.class
	q.changes++
	q.queued--
	q.arrivedSum -= uint64(r.arrived)
	q.due.remove(r)
	c.detach(r)
	q.left(c)
	return true
}

// left must be called when a waiter has left c. A class that shares its tier loses its credit with its last waiter,
// before a late correction can be set off against it.
func (q *FairRequestQueue) left(c *class) {
	if in := c.ring; c.queued == 0 && in.shared() {
		in.discipline.end(&in.level, &c.share)
	}
	q.emptied(c)
	if q.shares != nil {
		q.shares.settles()
	}
}

// emptied resets the state that a tier without waiters does not keep: its credit and debt. A draining class is dropped
// with its last waiter.
func (q *FairRequestQueue) emptied(c *class) {
	t := c.tier
	if t.queued == 0 {
		t.deficit, t.reset = 0, q.charges
	}
	if c.drained() && !c.gone {
		t.dropClass(c)
	}
}
