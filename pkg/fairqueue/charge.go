package fairqueue

// pop removes a candidate from the class and charges everything on its path: its flow, the flows above it, and the
// class.
func (c *class) pop(of *Candidate) {
	r, stale := of.Request, false
	for fl := r.flowLane; fl != nil; fl = fl.above {
		f, in := fl.flow, fl.flow.siblings
		in.claimed, in.another = of.claimed, of.turn != nil
		tag := fl.tag
		if fl.head != r { // claimed, or in another's turn
			tag = in.discipline.tag(&in.level, &f.share, r)
		}
		if in.another {
			in.least = VirtualTime(fl.ownBranch().flows.MinKey().Value)
		}
		if in.discipline.charge(&in.level, &f.share, r, tag, r.receiptOf(f.depth)) && len(f.lanes) > 1 {
			f.retag(fl) // the line in r's lane gets its tag when r has left
		}
		stale = stale || in.stale
	}
	if !of.claimed {
		c.tier.hadTurn(c.ring)
	}
	if !c.ring.shared() {
		c.leave(of)
		if r.extra != nil {
			r.extra.paid[classDepth] = receipt{} // of an earlier pop
		}
	} else {
		c.popShared(of)
	}
	if stale {
		c.siblings.freshen()
	}
}

// leave removes a candidate from its line, after its flows have been charged.
func (c *class) leave(of *Candidate) {
	r := of.Request
	fl := r.flowLane
	head := fl.head
	c.detach(r)
	if head != r { // it went before the head, and its charge has moved the head's tag
		fl.retag()
		c.reindex(fl)
	}
}

// popShared removes a candidate and charges the class, which shares its ring.
func (c *class) popShared(of *Candidate) {
	in, r := c.ring, of.Request
	turn := c.turnTag(r)
	in.claimed, in.outOfOrder = of.claimed, of.Promoted
	c.leave(of)
	p := r.receiptOf(classDepth)
	p.weight = c.weight
	in.discipline.charge(&in.level, &c.share, r, turn, p)
	c.changed()
	if in.stale {
		in.stale = false
		for _, c := range in.classes {
			in.discipline.freshen(&in.level, &c.share)
		}
	}
}

// freshen lets the discipline update every share of the levels that are stale.
func (s *siblings) freshen() {
	stale := s.stale
	s.stale = false
	freshen := func(f *flow) {
		if f.under != nil {
			f.under.freshen()
		}
		if stale && s.discipline.freshen(&s.level, &f.share) {
			f.retag(nil)
		}
	}
	for f := range s.flows.all() {
		freshen(f)
	}
	if s.discipline.active() {
		for f := range s.flows.idle() {
			freshen(f)
		}
	}
}

// refund takes back the charges of r's pop on its path; f is r's flow.
func (c *class) refund(f *flow, r *Request) {
	for ; f != nil; f = f.above {
		if f.siblings.discipline.refund(&f.siblings.level, &f.share, r, r.receiptOf(f.depth)) {
			f.retag(nil)
		}
	}
	if p := c.receipt(r); p != nil {
		c.ring.discipline.refund(&c.ring.level, &c.share, r, p)
		c.changed()
	}
}

// receipt returns the charge of r's pop to the class, which is still in its tier; nil if it was charged nothing, or if
// the class no longer shares its tier.
func (c *class) receipt(r *Request) *receipt {
	if !c.ring.shared() || r.extra == nil || r.extra.paid[classDepth].weight == 0 {
		return nil
	}
	return &r.extra.paid[classDepth]
}
