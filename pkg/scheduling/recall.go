package scheduling

// Recalled has the parts of a Query that a recording keeps. They suffice to rebuild it for any board of the same
// endpoints.
type Recalled struct {
	// Model is the requested model, Adapter whether that is a LoRA adapter, Confined whether there is a subset, and
	// Subset its canonical entries.
	Model    string
	Adapter  bool
	Confined bool
	Subset   []HostPort
	// Needs are the request's other needs.
	Needs Needs
	// Lane is the lane's name at the request's arrival. It is for readers: a board computes the name itself.
	Lane string
	// Ratings are its prompt's ratings; nil: none.
	Ratings *Ratings
	// AtPrefill are its prompt's ratings at the prefill engines; nil: none.
	AtPrefill *Ratings
}

// Recalled returns the parts of the query. Its slices must not be changed.
func (q *Query) Recalled() Recalled {
	return Recalled{
		Model: q.model, Adapter: q.adapter, Confined: q.confined, Subset: q.entries, Needs: q.needs, Lane: q.lane,
		Ratings: q.ratings, AtPrefill: q.atPrefill,
	}
}

// Query returns a query that a board treats like the original.
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

// Scheduler returns the present scheduler.
func (b *Board) Scheduler() *Scheduler { return b.scheduler }

// Config returns the scheduler's configuration. Its slices must not be changed.
func (s *Scheduler) Config() Config { return s.config }
