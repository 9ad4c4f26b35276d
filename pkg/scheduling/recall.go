package scheduling

// Recalled has the parts that a Query was made of. A recording keeps them; they suffice to make it again for any board
// of the same endpoints.
type Recalled struct {
	// Model is the requested model, Adapter whether that is a LoRA adapter, Confined whether there is a subset, and
	// Subset its canonical entries.
	Model    string
	Adapter  bool
	Confined bool
	Subset   []HostPort
	// Needs are the request's other needs.
	Needs Needs
	// Lane is the lane as it was named when the request came. It is for readers: a board names it anew.
	Lane string
	// Ratings are those of its prompt; nil: none.
	Ratings *Ratings
	// AtPrefill are its ratings at the prefill engines; nil: none.
	AtPrefill *Ratings
}

// Recalled returns the parts that the query was made of. Its slices must not be changed.
func (q *Query) Recalled() Recalled {
	return Recalled{
		Model: q.model, Adapter: q.adapter, Confined: q.confined, Subset: q.entries, Needs: q.needs, Lane: q.lane,
		Ratings: q.ratings, AtPrefill: q.atPrefill,
	}
}

// Query returns a query that a board treats as it would the one that r was taken from.
func (r Recalled) Query() *Query {
	q := &Query{
		constraint: constraint{model: r.Model, adapter: r.Adapter, confined: r.Confined, entries: r.Subset, needs: r.Needs},
		lane:       r.Lane, ratings: r.Ratings, atPrefill: r.AtPrefill, prefill: -1,
	}
	if r.Ratings != nil && r.Ratings.Prompt > 0 {
		q.uncached = r.Ratings.uncached(r.Ratings.Best())
	}
	if q.confined {
		q.text = subsetLane(q.entries)
	}
	return q
}

// Scheduler is how endpoints are chosen now.
func (b *Board) Scheduler() *Scheduler { return b.scheduler }

// Config has the configuration that the scheduler was made of. Its slices must not be changed.
func (s *Scheduler) Config() Config { return s.config }
