package fairqueue

import "github.com/weir-epp/weir/internal/heap"

// ring is a group of classes that share its turns. The rings of a tier take turns, one request each, of any cost; a
// ring without a request that can go is skipped. A tier has a single ring unless classes name others.
type ring struct {
	level // its classes: in configured order, then those that drain; at least one
	tier  *tier
	name  string
	place int // its index in its tier's rings
}

// shared reports whether several classes share the ring's turns. A single class is charged nothing.
func (r *ring) shared() bool { return len(r.classes) > 1 }

// removed reports whether no class of the ring accepts arrivals any more.
func (r *ring) removed() bool { return r.classes[0].removed }

// head returns the ring's next request, or nil if there is none in an open lane.
func (r *ring) head() *Request {
	if len(r.classes) == 1 {
		return r.classes[0].head()
	}
	if d, ok := r.discipline.(drr); ok {
		return d.next(&r.level)
	}
	return r.turn((*class).head)
}

// turn returns the request of the class whose turn it is, or nil if no class has one. offer returns a class's next
// request, or nil. turn visits every class and computes tags on demand.
func (r *ring) turn(offer func(*class) *Request) (best *Request) {
	if len(r.classes) == 1 {
		return offer(r.classes[0])
	}
	var least heap.Key
	for _, c := range r.classes {
		r.tier.visits++
		head := offer(c)
		if head == nil {
			continue
		}
		if k := (heap.Key{Value: uint64(c.turnTag(head)), Seq: head.seq}); best == nil || k.Before(least) {
			best, least = head, k
		}
	}
	return best
}

// set sets the ring's classes, in their order.
func (r *ring) set(classes []*class) {
	r.classes = classes
	r.open, r.covered, r.uncapped = newClassSet(len(classes)), newClassSet(len(classes)), newClassSet(len(classes))
	for i, c := range classes {
		c.ring, c.place = r, i
	}
	for _, c := range classes {
		c.changed()
	}
}

// ringOf returns the ring that a path names, or the first ring if it names none that accepts arrivals.
func (t *tier) ringOf(p *Path) *ring {
	if len(t.rings) > 1 {
		for _, r := range t.rings {
			if r.name == p.Ring && !r.removed() {
				return r
			}
		}
	}
	return t.rings[0]
}

// arrange sets the tier's classes, and with them its rings, in the order in which their first classes come.
func (t *tier) arrange(classes []*class) {
	before, after := t.rings, map[*ring][]*class{}
	t.classes, t.rings = classes, nil
	for _, c := range classes {
		r := find(t.rings, c.config.Ring)
		if r == nil {
			if r = find(before, c.config.Ring); r == nil {
				r = &ring{level: level{discipline: t.queue.config.amongClasses()}, tier: t, name: c.config.Ring}
			}
			t.rings = append(t.rings, r)
		}
		after[r] = append(after[r], c)
	}
	for i, r := range t.rings {
		r.place = i
		r.set(after[r])
	}
	t.next = t.nextOf(before)
}

func find(rings []*ring, name string) *ring {
	for _, r := range rings {
		if r.name == name {
			return r
		}
	}
	return nil
}

// nextOf returns the ring whose turn is next, given the former rings: the one whose turn it was, or the first remaining
// one after it.
func (t *tier) nextOf(before []*ring) *ring {
	if t.next != nil {
		for i := range before {
			r := before[(t.next.place+i)%len(before)]
			if find(t.rings, r.name) == r {
				return r
			}
		}
	}
	return t.rings[0]
}

// inTurn returns the first request offered by the rings, beginning with the ring whose turn is next; nil if there is
// none.
func (t *tier) inTurn(offer func(*ring) *Request) *Request {
	for i := range t.rings {
		if r := offer(t.rings[(t.next.place+i)%len(t.rings)]); r != nil {
			return r
		}
	}
	return nil
}

// hadTurn notes that a ring of the tier has had its turn.
func (t *tier) hadTurn(r *ring) {
	if len(t.rings) > 1 {
		t.next = t.rings[(r.place+1)%len(t.rings)]
	}
}
