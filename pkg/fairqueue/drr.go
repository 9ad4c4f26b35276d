package fairqueue

// drr is deficit round robin between classes (Shreedhar, Varghese 1995), in the form of NVIDIA's Dynamo. The classes stand
// in a ring. From the cursor on, a class whose credit covers the cost of its head is served; one whose credit does not
// gets its quantum, and is served if that is enough. When nobody is served, everybody who has something to offer gets as
// many quanta at once as the first one needs, and the next one in the ring that can pay is served. The cost is paid from
// the credit. A class that cannot go keeps its credit and earns nothing; one that has become empty begins anew.
//
// In other words: a class needs n quanta to pay for its head, and the one with the least max(1, n) is served, the first of
// several from the cursor on. So its tag is that number, then its distance from the cursor.
//
// Credit is capped at the cost of the head and one quantum, each time when somebody is served. Without the cap a class
// that saves for a costly head, and gets cheap ones before it, would be served with these as long as the credit lasts.
// A class that was served out of turn, by a claim, owes its cost, up to mostOwed; that debt outlives its waiters.
//
// Credit and debt are at most 2^33 and every turn looks at each class once: O(classes), with any quanta and costs.
type drr struct {
	costsKnown
	cursor Cursor
}

// Cursor says where the next turn begins after a class was served and can pay for its next head too.
type Cursor uint8

const (
	// Stay begins with the same class, so that it uses up its credit.
	Stay Cursor = iota
	// Advance begins with the next class, as the released Dynamo 1.6.1 does; the credit is kept.
	Advance
)

// drrLevel is what drr knows of a tier: the class to begin with; nil, or one that is gone: the first.
type drrLevel struct{ cursor *class }

// drrShare is what drr knows of a class: its credit, or below 0 what it owes.
type drrShare struct{ deficit int64 }

// mostOwed bounds debts, and what refunds give back until the next turn.
const mostOwed = 4 * int64(MaxCost)

// distanceBits of a tag are the distance from the cursor.
const distanceBits = 20

// index is the place of s in the ring, and from is that of the cursor.
func (drr) index(l *level, s *share) (i, from int) {
	for n, c := range l.classes {
		if &c.share == s {
			i = n
		}
		if c == l.cursor {
			from = n
		}
	}
	return i, from
}

// needs is how many quanta a class needs to pay a cost.
func (c *class) needs(cost Cost) int64 {
	lacks := int64(cost) - c.deficit
	return max(0, (lacks+int64(c.config.Quantum)-1)/int64(c.config.Quantum))
}

// earn adds n quanta to the credit of a class with this head, up to the cap.
func (c *class) earn(n int64, head *Request) {
	quantum := int64(c.config.Quantum)
	most := int64(head.Cost) + quantum
	c.deficit = min(c.deficit, most)
	if n > (most-c.deficit)/quantum {
		c.deficit = most
	} else {
		c.deficit += n * quantum
	}
}

func (drr) begin(_ *level, s *share) { s.deficit = min(s.deficit, 0) }

func (d drr) tag(l *level, s *share, head *Request) VirtualTime {
	i, from := d.index(l, s)
	if i < from {
		i += len(l.classes)
	}
	return VirtualTime(max(1, l.classes[i%len(l.classes)].needs(head.Cost))<<distanceBits | int64(i-from))
}

func (d drr) charge(l *level, s *share, r *Request, _ VirtualTime, _ *receipt) (moved bool) {
	i, from := d.index(l, s)
	served := l.classes[i]
	if !l.claimed {
		d.round(l, served, from, r)
	}
	s.deficit = max(s.deficit-int64(r.Cost), -mostOwed)
	if !l.claimed {
		l.cursor = served
		if d.cursor == Advance || served.offer == nil || served.needs(served.offer.Cost) > 0 {
			l.cursor = l.classes[(i+1)%len(l.classes)]
		}
	}
	return true
}

// round gives the classes their quanta until served can pay for r, from the cursor on, and holds all to their caps.
func (drr) round(l *level, served *class, from int, r *Request) {
	needed := served.needs(r.Cost)
	quanta := max(1, needed)
	for j := range l.classes {
		switch c := l.classes[(from+j)%len(l.classes)]; {
		case c == served:
			if c.earn(needed, r); needed <= 1 {
				quanta = 0 // it was served before the others were asked
			}
		case c.offer != nil:
			c.earn(quanta, c.offer)
		}
	}
}

func (drr) refund(_ *level, s *share, r *Request, _ *receipt) (moved bool) {
	s.deficit = min(s.deficit+int64(r.Cost), mostOwed)
	return true
}

func (drr) freshen(*level, *share) (moved bool) { return false }

func (d drr) describe(l *level, s *share, number func(int64)) {
	if s == nil {
		_, from := d.index(l, nil)
		number(int64(from))
		return
	}
	deficit := s.deficit
	if i, _ := d.index(l, s); l.classes[i].queued == 0 {
		deficit = min(deficit, 0) // as begin has it
	}
	number(deficit)
}

func (drr) describeReceipt(*level, *receipt, func(int64)) {}
