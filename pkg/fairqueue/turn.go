package fairqueue

// head returns the tier's next request, or nil if there is none in an open lane.
func (t *tier) head() *Request {
	if len(t.classes) == 1 {
		return t.classes[0].head()
	}
	return t.turn((*class).head)
}

// starvedHead is the request that goes when the tier is promoted.
func (t *tier) starvedHead() *Request { return t.turn((*class).starvedHead) }

// oldest returns the request that lends its age to the tier, or nil if there is none.
func (t *tier) oldest() (oldest *Request) {
	if len(t.classes) == 1 {
		return t.classes[0].oldest()
	}
	for _, c := range t.classes {
		if r := c.oldest(); r != nil && (oldest == nil || r.seq < oldest.seq) {
			oldest = r
		}
	}
	return oldest
}

// turn is the request of the class whose turn it is, of what each has to offer; nil: none has anything. Classes are few,
// so each one's tag is computed on the spot.
func (t *tier) turn(offer func(*class) *Request) (best *Request) {
	if len(t.classes) == 1 {
		return offer(t.classes[0])
	}
	var least key
	for _, c := range t.classes {
		r := offer(c)
		if r == nil {
			continue
		}
		if k := (key{uint64(c.turnTag(r)), r.seq}); best == nil || k.before(least) {
			best, least = r, k
		}
	}
	return best
}

// turnTag orders the classes of a tier by what they offer.
func (c *class) turnTag(r *Request) VirtualTime {
	return c.tier.discipline.tag(&c.tier.level, &c.share, r)
}

// collectOffers notes what each class has to offer in the turn that a candidate is from.
func (t *tier) collectOffers(of *Candidate) {
	t.claimed = of.claimed
	for _, c := range t.classes {
		if c.offer = c.head(); of.Promoted {
			c.offer = c.starvedHead()
		}
	}
}
