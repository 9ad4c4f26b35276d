package fairqueue

// drr is deficit round robin between classes (Shreedhar, Varghese 1995), in the form of NVIDIA's Dynamo. The classes form a
// ring. Starting at the cursor, each class whose deficit is below the cost of its head earns its quantum; the first class
// whose deficit then covers the cost is served and pays it. If no class can pay, all classes that can go earn the number
// of quanta that the first of them to be able to pay still needs, in one step. A class that cannot go keeps its deficit
// and earns nothing. A class that becomes empty loses its deficit.
//
// Equivalently: a class needs n quanta to pay for its head, and the class with the least max(1, n) is served; of several,
// the first from the cursor on. So a class's tag is max(1, n), then its distance from the cursor.
//
// Whenever a class is served, every deficit is capped at the cost of the class's head plus one quantum. Without the cap, a
// class that has saved for a costly head and then gets cheap requests before it would be served with those until its
// savings are spent. A class that is served out of turn, by Claim, owes the cost, up to mostOwed; its debt remains when
// it becomes empty. So does what a request turns out to have cost beyond its estimate; what it has cost less is a deficit
// like any other. While a class is empty such corrections add up, and what is above 0 is lost when it has a waiter again.
//
// Deficits are within ±2^33, and each turn visits each class once, whatever the quanta and costs.
type drr struct {
	costsKnown
	cursor Cursor
}

// Cursor determines where the next turn begins if the class that was served can pay for its next head as well.
type Cursor uint8

const (
	// Stay begins with the same class, so that it spends its deficit.
	Stay Cursor = iota
	// Advance begins with the next class, as the released Dynamo 1.6.1 does; the class keeps its deficit.
	Advance
)

// drrLevel is drr's state of a tier: the class to begin with. nil, or a class that is gone, means the first class.
type drrLevel struct{ cursor *class }

// drrShare is drr's state of a class: what it has earned and not spent, or below 0 what it owes.
type drrShare struct{ deficit int64 }

// mostOwed bounds a class's debt, and the deficit that refunds and actual costs can give it until the next turn.
const mostOwed = 4 * int64(MaxCost)

// distanceBits is the number of bits of a tag that hold the distance from the cursor.
const distanceBits = 20

// index returns the index of s in the ring, and that of the cursor.
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

// needs returns the number of quanta that a class needs to pay a cost.
func (c *class) needs(cost Cost) int64 {
	lacks := int64(cost) - c.deficit
	return max(0, (lacks+int64(c.config.Quantum)-1)/int64(c.config.Quantum))
}

// earn adds n quanta to the deficit of a class with this head, up to the cap.
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

func (drr) end(_ *level, s *share) { s.deficit = min(s.deficit, 0) }

func (d drr) tag(l *level, s *share, head *Request) VirtualTime {
	i, from := d.index(l, s)
	if i < from {
		i += len(l.classes)
	}
	return VirtualTime(max(1, l.classes[i%len(l.classes)].needs(head.Cost))<<distanceBits | int64(i-from))
}

func (d drr) charge(l *level, s *share, r *Request, _ VirtualTime, p *receipt) (moved bool) {
	i, from := d.index(l, s)
	served := l.classes[i]
	if !l.claimed {
		d.round(l, served, from, r)
	}
	p.charged = VirtualTime(r.Cost)
	s.deficit = max(s.deficit-int64(r.Cost), -mostOwed)
	if !l.claimed {
		l.cursor = served
		if d.cursor == Advance || served.offer == nil || served.needs(served.offer.Cost) > 0 {
			l.cursor = l.classes[(i+1)%len(l.classes)]
		}
	}
	return true
}

// round adds the quanta that the classes earn, from the cursor on, until served can pay for r, and applies the caps.
func (drr) round(l *level, served *class, from int, r *Request) {
	needed := served.needs(r.Cost)
	quanta := max(1, needed)
	for j := range l.classes {
		switch c := l.classes[(from+j)%len(l.classes)]; {
		case c == served:
			if c.earn(needed, r); needed <= 1 {
				quanta = 0 // it was served before the ring was completed, so the classes after it earn nothing
			}
		case c.offer != nil:
			c.earn(quanta, c.offer)
		}
	}
}

func (drr) refund(_ *level, s *share, _ *Request, p *receipt) (moved bool) {
	s.deficit = min(s.deficit+int64(p.charged), mostOwed)
	return true
}

func (d drr) adjust(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	return VirtualTime(to) > p.charged && d.trueUp(l, s, r, to, p)
}

// trueUp takes from the deficit what r has cost beyond what it was charged, which is a cost here.
func (drr) trueUp(_ *level, s *share, _ *Request, to Cost, p *receipt) (moved bool) {
	s.deficit = max(-mostOwed, min(s.deficit+int64(p.charged)-int64(to), mostOwed))
	p.charged = VirtualTime(to)
	return true
}

func (drr) freshen(*level, *share) (moved bool) { return false }

func (d drr) describe(l *level, s *share, number func(int64)) {
	if s == nil {
		_, from := d.index(l, nil)
		number(int64(from))
		return
	}
	number(s.deficit)
}

func (drr) describeReceipt(_ *level, p *receipt, number func(int64)) { number(int64(p.charged)) }
