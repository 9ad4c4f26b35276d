package fairqueue

// head returns the tier's next request, or nil if there is none in an open lane.
func (t *tier) head() *Request {
	if len(t.rings) == 1 {
		return t.rings[0].head()
	}
	return t.inTurn((*ring).head)
}

// starvedHead returns the tier's next request if the tier is promoted, or nil if there is none.
func (t *tier) starvedHead() *Request { return t.turn((*class).starvedHead) }

// oldest returns the waiter whose age is the tier's: the oldest in a lane with room below the upper bound. It returns nil
// if there is none.
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

// turn returns the request of the ring and the class whose turn it is, or nil if no class has one. offer returns a
// class's next request, or nil.
func (t *tier) turn(offer func(*class) *Request) *Request {
	if len(t.rings) == 1 {
		return t.rings[0].turn(offer)
	}
	return t.inTurn(func(r *ring) *Request { return r.turn(offer) })
}

// turnTag returns the class's tag with r as its next request. The class with the least tag has its turn.
func (c *class) turnTag(r *Request) VirtualTime {
	c.ring.subject = c
	return c.ring.discipline.tag(&c.ring.level, &c.share, r)
}

// changed must be called when the class's head or account may have changed. It keeps drr's state of the class, so that
// a turn does not have to visit all of them.
func (c *class) changed() {
	r := c.ring
	if !r.shared() {
		return
	}
	head := c.head()
	r.open.put(c.place, head != nil)
	r.covered.put(c.place, head != nil && c.credit >= int64(head.Cost))
	r.uncapped.put(c.place, true)
}
