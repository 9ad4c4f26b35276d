package scheduling

import "slices"

// Decision explains a board's choice for a request, for humans and as JSON.
type Decision struct {
	// Version is that of the board's snapshot.
	Version uint64 `json:"version"`
	// Lane is the request's lane; "" is the whole pool.
	Lane string `json:"lane"`
	// Stock is the number of requests at the lane's ready endpoints, of this and other Weirs; LowerBound and UpperBound
	// are the sums of their bounds in requests. Requests above one endpoint's bound do not count against the others'.
	Stock      int     `json:"stock"`
	LowerBound float64 `json:"lowerBound"`
	UpperBound float64 `json:"upperBound"`
	// BelowLower and BelowUpper report whether the lane has room for a release from the queue, and for a bypass. They
	// are true for the whole pool.
	BelowLower bool `json:"belowLower"`
	BelowUpper bool `json:"belowUpper"`
	// Policy is the policy of the comparison. Prompt is the length of the request's prompt in tokens, if compared.
	// Similar is set if endpoints with similar prompts are known, and Adapter if its model is an adapter.
	Policy  string `json:"policy"`
	Prompt  int64  `json:"prompt,omitempty"`
	Similar bool   `json:"similar,omitempty"`
	Adapter bool   `json:"adapter,omitempty"`
	// Chosen and Fallbacks are the addresses of the request's last placement, if it has one.
	Chosen    string   `json:"chosen,omitempty"`
	Fallbacks []string `json:"fallbacks,omitempty"`
	// Prefill is the address of the chosen prefill engine, if any.
	Prefill string `json:"prefill,omitempty"`
	// Candidates are endpoints of the pool, by ID, and More is the number of unlisted ones.
	Candidates []Candidate `json:"candidates"`
	More       int         `json:"more,omitempty"`
}

// Candidate is one endpoint in a Decision.
type Candidate struct {
	ID      EndpointID `json:"id"`
	Address string     `json:"address"`
	// Stock is the number of this Weir's requests in flight there, and Foreign the number of other Weirs'.
	Stock   int `json:"stock"`
	Foreign int `json:"foreign,omitempty"`
	// Tokens is the number of tokens of both, if TokenBound bounds it.
	Tokens     int64 `json:"tokens,omitempty"`
	TokenBound int64 `json:"tokenBound,omitempty"`
	// Prompts is the number of uncached prompt tokens that it has yet to read, for requests whose first token will be
	// seen.
	Prompts int64 `json:"prompts,omitempty"`
	// Failed are the filters that rule it out; without any it can be picked.
	Failed []Failure `json:"failed,omitempty"`
	// Cached is the number of the prompt's tokens expected in its cache, and Cost the request's cost there now, in
	// tokens. Both are 0 if nothing is known of the prompt.
	Cached int64 `json:"cached,omitempty"`
	Cost   int64 `json:"cost,omitempty"`
	// Loading is the cost of loading the request's adapter there, in tokens; 0 if it needs none or the adapter is
	// there.
	Loading int64 `json:"loading,omitempty"`
	// Score is its score by points, for this request, in millionths of a point; nil with another policy.
	Score *Score `json:"score,omitempty"`
	// Total is its standing for an unknown request.
	Total Standing `json:"total"`
}

// Failure is a filter that rules an endpoint out, and why.
type Failure struct {
	Filter string `json:"filter"`
	Reason string `json:"reason"`
	// Tag is MindRouter's tag of the constraint; "" for filters that MindRouter does not have.
	Tag string `json:"tag,omitempty"`
}

// Explain explains the board's present ratings of all the request's endpoints; after a Place, they include the request
// itself. It changes no count and no rotation. It allocates and visits every endpoint, so it is only for use on demand.
// For the comparison at a placement see Query.Watch.
func (b *Board) Explain(q *Query) Decision {
	b.refresh(q)
	v := View{query: q, spots: make([]viewed, 0, len(b.spots))}
	b.keep(&v, -1, nil)
	return v.decision()
}

// candidate explains one endpoint.
func (v *View) candidate(s *viewed) Candidate {
	q, m := v.query, &v.snap.members[s.position]
	c := Candidate{ID: m.ID, Address: m.Address, Stock: int(s.inFlight), Foreign: int(s.foreign), Prompts: s.prompts}
	if s.tokens.upper > 0 {
		c.Tokens, c.TokenBound = s.tokens.held(), s.tokens.upper
	}
	for _, name := range v.scheduler.config.Filters {
		f := filters[slices.IndexFunc(filters, func(f filter) bool { return f.name == name })]
		if !f.passes(&q.constraint, m) {
			c.Failed = append(c.Failed, Failure{Filter: f.name, Reason: f.reason(&q.constraint, m), Tag: f.tag})
		}
	}
	if !m.Work.Serves() {
		c.Failed = append(c.Failed, Failure{Filter: filterRole, Reason: "its role is " + m.Work.String()})
	}
	if lacks := m.Lacks & q.needs; lacks != 0 && m.Work.Serves() {
		c.Failed = append(c.Failed, Failure{Filter: filterNeeds, Reason: "does not support " + lacks.String(), Tag: lacks.Tag()})
	}
	if s.held() >= s.limit {
		c.Failed = append(c.Failed, Failure{Filter: filterMaxInFlight, Reason: "as many in flight as it may have", Tag: TagCapacity})
	}
	if s.full() {
		c.Failed = append(c.Failed, Failure{Filter: filterBound, Reason: "as many requests there as its upper bound", Tag: TagCapacity})
	}
	if s.excepted {
		c.Failed = append(c.Failed, Failure{Filter: filterExcepted, Reason: "its tenant is at its cap there, or its circuit is open", Tag: TagCapacity})
	}
	if s.tokens.full() {
		c.Failed = append(c.Failed, Failure{Filter: filterTokens, Reason: "its requests take as many tokens as it may", Tag: TagMemory})
	}
	c.Total, c.Loading = s.total, s.loading
	if by, ok := v.scheduler.by.(*pointed); ok {
		score := by.score(s.load(), s.loaded)
		c.Score = &score
		return c
	}
	if r := q.ratings; q.adapter || r != nil && r.Prompt > 0 {
		c.Cached = r.Cached(m.ID)
		by := v.scheduler.by
		c.Cost = int64((by.cost(&s.spot, r.uncached(c.Cached)+c.Loading) + by.wait(s.prompts)) / CostOne)
	}
	return c
}
