package fairqueue

// head is the tier's next request; nil: there is none in a lane that is open.
func (t *tier) head() *Request {
	if len(t.classes) == 1 {
		return t.classes[0].head()
	}
	return t.turn((*class).head)
}

// starvedHead is the request that goes when the tier is promoted.
func (t *tier) starvedHead() *Request { return t.turn((*class).starvedHead) }

// oldest is the request that lends its age to the tier; nil: there is none.
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
		if c.next = offer(c); c.next == nil {
			continue
		}
		k := c.turnKey(c.next)
		if best == nil || k.before(least) {
			best, least = c.next, k
		}
	}
	return best
}

// turnKey orders the classes of a tier by what they offer.
func (c *class) turnKey(r *Request) key {
	t := c.tier
	return key{uint64(t.discipline.tag(&t.level, &c.share, r)), r.seq}
}
