package scheduling

// Recalled is what a Query was made of: what a recording keeps of it, and enough to make it again for any board of the
// same endpoints.
type Recalled struct {
	// Model is what was asked for, Confined whether there is a subset, and Subset its canonical entries.
	Model    string
	Confined bool
	Subset   []HostPort
	// Lane is the lane as it was named when the request came. It is for readers: a board names it anew.
	Lane string
	// Ratings are what each scorer said of an endpoint for the request, where that is more than nothing, in order of ID.
	Ratings []EndpointRating
}

// EndpointRating is what one scorer said of an endpoint for a request.
type EndpointRating struct {
	Scorer string
	EndpointScore
}

// Recalled returns what the query was made of. Its slices must not be changed.
func (q *Query) Recalled() Recalled {
	r := Recalled{Model: q.model, Confined: q.confined, Subset: q.entries, Lane: q.lane}
	for _, rating := range q.ratings {
		r.Ratings = append(r.Ratings, EndpointRating{rating.scorer, rating.EndpointScore})
	}
	return r
}

// Query returns a query that a board treats as it would the one that r was taken from.
func (r Recalled) Query() *Query {
	q := &Query{constraint: constraint{model: r.Model, confined: r.Confined, entries: r.Subset}, lane: r.Lane}
	if q.confined {
		q.text = subsetLane(q.entries)
	}
	for _, said := range r.Ratings {
		q.ratings = append(q.ratings, rating{said.Scorer, said.EndpointScore})
	}
	return q
}

// Scheduler is how endpoints are chosen now.
func (b *Board) Scheduler() *Scheduler { return b.scheduler }

// Config is what the scheduler was made of. Its slices must not be changed.
func (s *Scheduler) Config() Config { return s.config }
