package fairqueue

// ClassView is the state of a class.
type ClassView struct {
	Tier        int
	Ring, Class string
	Quantum     Cost
	// Queued is the number of its waiting requests. RawTokens and CachedTokens are the sums of their Path.Prompt.
	Queued                  int
	RawTokens, CachedTokens int64
	// Deficit is its earned and unspent service, in units of cost; a negative one is a debt. It is 0 in a ring of one
	// class.
	Deficit int64
}

// Classes returns the state of every class, by rank of its tier and in the order of the rings.
func (q *FairRequestQueue) Classes() (views []ClassView) {
	for _, t := range q.tiers {
		for _, c := range t.classes {
			views = append(views, ClassView{
				Tier: t.id, Ring: c.config.Ring, Class: c.config.Name, Quantum: c.config.Quantum,
				Queued: c.queued, RawTokens: c.amounts[LimitRawTokens], CachedTokens: c.amounts[LimitCachedTokens],
				Deficit: c.deficit + c.credit,
			})
		}
	}
	return views
}

// NumberOfClass returns the index in Config.Classes of ClassOf(r); -1 if that is no longer configured, or no classes
// are.
func (q *FairRequestQueue) NumberOfClass(r *Request) int { return q.classAt(r).number }

// ClassOf returns the names of the ring and the class that r has joined, or else would join.
func (q *FairRequestQueue) ClassOf(r *Request) (ring, class string) {
	c := q.classAt(r)
	return c.config.Ring, c.config.Name
}

// classAt returns the class that r has joined, or else would join.
func (q *FairRequestQueue) classAt(r *Request) *class {
	if r.Queued() {
		return r.flowLane.lane.class
	}
	if c := r.chargedTo(); c != nil {
		return c
	}
	return q.tierOf(r.Tier).classOf(r)
}
