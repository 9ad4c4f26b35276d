package fairqueue

import "github.com/weir-epp/weir/internal/heap"

// head returns the tier's next request, or nil if there is none in an open lane.
func (t *tier) head() *Request {
	if len(t.classes) == 1 {
		return t.classes[0].head()
	}
	if d, ok := t.discipline.(drr); ok {
		return d.next(&t.level)
	}
	return t.turn((*class).head)
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

// turn returns the request of the class whose turn it is. offer returns the request that a class would be served with, or
// nil if there is none; turn returns nil if no class has one. It visits every class: tags are computed on demand.
func (t *tier) turn(offer func(*class) *Request) (best *Request) {
	if len(t.classes) == 1 {
		return offer(t.classes[0])
	}
	var least heap.Key
	for _, c := range t.classes {
		t.visits++
		r := offer(c)
		if r == nil {
			continue
		}
		if k := (heap.Key{Value: uint64(c.turnTag(r)), Seq: r.seq}); best == nil || k.Before(least) {
			best, least = r, k
		}
	}
	return best
}

// turnTag returns the tag of the class if it is served with r. The class with the least tag has its turn.
func (c *class) turnTag(r *Request) VirtualTime {
	c.tier.subject = c
	return c.tier.discipline.tag(&c.tier.level, &c.share, r)
}

// arrange sets the tier's classes, in the order of the ring.
func (t *tier) arrange(classes []*class) {
	t.classes = classes
	t.open, t.covered, t.uncapped = newClassSet(len(classes)), newClassSet(len(classes)), newClassSet(len(classes))
	for i, c := range classes {
		c.place = i
	}
	for _, c := range classes {
		c.changed()
	}
}

// changed must be called when the class's head or account may have changed. It keeps what drr knows of the class, so that a
// turn does not have to visit all of them.
func (c *class) changed() {
	t := c.tier
	if len(t.classes) == 1 {
		return
	}
	head := c.head()
	t.open.put(c.place, head != nil)
	t.covered.put(c.place, head != nil && c.credit >= int64(head.Cost))
	t.uncapped.put(c.place, true)
}
