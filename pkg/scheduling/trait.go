package scheduling

// Trait is a property that an endpoint has and a lane asks for: an address, a host or a model. An index of lanes by
// trait gives an endpoint's possible lanes without visiting all lanes. Traits are comparable.
type Trait struct {
	place HostPort
	model string
	any   bool // it serves any model
	every bool // every endpoint has it
}

// IsModel reports whether the trait is a model, or any.
func (t Trait) IsModel() bool { return t.model != "" || t.any }

// Traits appends to some the traits that admit an endpoint to the request's lane: it needs one of them. A lane of the
// whole pool asks for none.
func (b *Board) Traits(q *Query, some []Trait) []Trait {
	switch {
	case b.scheduler.filtersSubset && q.confined:
		for _, entry := range q.entries {
			some = append(some, Trait{place: entry})
		}
	case b.scheduler.filtersModel && q.model != "":
		some = append(some, Trait{model: q.model}, Trait{any: true})
	case b.scheduler.needsOf(b.snap, &q.constraint) != 0:
		some = append(some, Trait{every: true})
	}
	return some
}

// TraitsOf appends to some the traits of an endpoint, and reports whether it is in the pool.
func (b *Board) TraitsOf(id EndpointID, some []Trait) (traits []Trait, known bool) {
	p, known := b.snap.position(id)
	if !known {
		return some, false
	}
	m := &b.snap.members[p]
	some = append(some, Trait{place: m.at}, Trait{place: HostPort{Host: m.at.Host}})
	if len(m.Models) == 0 {
		some = append(some, Trait{any: true})
	}
	if b.snap.lacked != 0 {
		some = append(some, Trait{every: true})
	}
	for _, model := range m.Models {
		some = append(some, Trait{model: model})
	}
	return some, true
}

// Reach appends to some the endpoints, ready or not, of the request's lane by their present traits; it may append a few
// more. If the lane has every ready endpoint, it appends none and whole is true.
func (b *Board) Reach(q *Query, some []EndpointID) (endpoints []EndpointID, whole bool) {
	b.refresh(q)
	if q.reach.whole {
		return some, true
	}
	positions := q.reach.all
	if b.scheduler.filtersSubset && q.confined {
		positions = b.snap.named(q.entries) // regardless of models, since its traits do not include them
	}
	for _, p := range positions {
		some = append(some, b.ring.ids[p])
	}
	return some, false
}
