package fairqueue

import "math/bits"

// drr is deficit round robin between classes (Shreedhar, Varghese 1995), in the form of NVIDIA's Dynamo. The classes
// form a ring. Starting at the cursor, each class whose deficit is below the cost of its head earns its quantum; the
// first class whose deficit then covers the cost is served and pays it. If no class can pay, all eligible classes earn,
// in one step, as many quanta as the first one able to pay still needs. A class that cannot go keeps its deficit and
// earns nothing. A class that becomes empty loses its deficit.
//
// Equivalently: if a class needs n quanta to pay for its head, the class with the least max(1, n) is served, and among
// equals the first from the cursor on. So a class's tag is max(1, n), then its distance from the cursor.
//
// Whenever a class is served, every deficit is capped at the cost of the class's head plus one quantum. Without the
// cap, a class that has saved for a costly head, and then gets cheap requests ahead of it, would be served with these
// until its savings are spent. A class served out of turn, by Claim, owes the cost, up to mostOwed; its debt remains
// when it becomes empty.
//
// A cost above the estimate is owed too. A cost below it is a separate credit: it first pays the class's debt, and when
// it covers the class's head, the class is served at once. That is not a turn: no class earns, and the cursor stays.
// With exact costs the class would have been served that much more in its last turn. (Added to the deficit, the credit
// would keep the class from earning its next quantum, or the cap would cut it: classes of 300 and 100 shared 3:2 when
// estimates were ten times too high.) So a class that always waits spends its quanta on actual costs, except for the
// errors of requests in flight, the heads and amounts cut by mostOwed. Credit is lost with the last waiter. While a
// class is empty corrections add up, and a positive sum is lost when it has a waiter again.
//
// Deficits are within ±2^33. A turn visits each class at most once, for any quanta and costs: if no class can pay, it
// computes the missing quanta. It ends at the first class that can pay with at most one quantum, so where quanta cover
// costs, each turn visits one or two of any number of classes. Classes without an open head are not visited, and the
// caps apply only to classes changed since the last time (drrLevel).
type drr struct {
	costsKnown
	cursor Cursor
}

// Cursor determines where the next turn begins if the served class can also pay for its next head.
type Cursor uint8

const (
	// Stay begins with the same class, so that it spends its deficit.
	Stay Cursor = iota
	// Advance begins with the next class, as the released Dynamo 1.6.1 does; the class keeps its deficit.
	Advance
)

// drrLevel is drr's state of a ring: the class to begin with. nil, or a class that is gone, means the first class.
// stays means that its turn continues, since it could pay for its next head when it was served. The sets are derived
// from the classes (class.changed); they save visits.
type drrLevel struct {
	cursor   *class
	stays    bool
	open     classSet // classes with a head in an open lane
	covered  classSet // of these, the ones whose credit covers it
	uncapped classSet // classes with a changed head or account since the caps were applied to them
}

// drrShare is drr's state of a class. deficit is its earnings not yet spent; below 0 it is a debt. credit is the sum of
// corrections in its favour; below 0 it reduces the earnings. A class without earnings has no negative credit.
type drrShare struct{ deficit, credit int64 }

// mostOwed bounds a class's debt, its credit, and the deficit that refunds can give it until the next turn.
const mostOwed = 4 * int64(MaxCost)

// distanceBits is the number of bits of a tag that hold the distance from the cursor.
const distanceBits = 20

// begins returns the place of the class to begin with: the cursor's, or the next one if a correction would have ended
// the cursor's turn.
func (drr) begins(l *level) (place int) {
	c := l.cursor
	if c == nil || c.place >= len(l.classes) || l.classes[c.place] != c {
		return 0
	}
	if l.stays && c.spent() {
		return (c.place + 1) % len(l.classes)
	}
	return c.place
}

// next returns the next request, the one with the least tag, or nil if no class has an open head.
func (d drr) next(l *level) *Request {
	from := d.begins(l)
	for at := range l.covered.around(from) {
		l.classes[at].tier.visits++
		return l.classes[at].head()
	}
	var best *Request
	var least int64
	for at := range l.open.around(from) {
		c := l.classes[at]
		c.tier.visits++
		head := c.head()
		if n := max(1, c.needs(head.Cost)); best == nil || n < least {
			if best, least = head, n; n == 1 {
				break
			}
		}
	}
	return best
}

// spent reports whether the class cannot pay for its head because corrections have taken from it.
func (c *class) spent() bool {
	if c.credit >= 0 {
		return false
	}
	head := c.head()
	return head != nil && c.deficit >= int64(head.Cost) && c.needs(head.Cost) > 0
}

// needs returns the number of quanta that a class needs to pay a cost.
func (c *class) needs(cost Cost) int64 {
	lacks := int64(cost) - c.deficit - min(c.credit, 0)
	return max(0, (lacks+int64(c.config.Quantum)-1)/int64(c.config.Quantum))
}

// earn adds n quanta to the deficit of a class with this head, up to the cap.
func (c *class) earn(n int64, head *Request) {
	quantum := int64(c.config.Quantum)
	most := int64(head.Cost) + quantum
	c.deficit, c.credit = c.deficit+min(c.credit, 0), max(c.credit, 0)
	c.deficit = min(c.deficit, most)
	if n > (most-c.deficit)/quantum {
		c.deficit = most
	} else {
		c.deficit += n * quantum
	}
}

func (drr) begin(_ *level, s *share) { s.forfeit() }

func (drr) end(_ *level, s *share) { s.forfeit() }

// forfeit takes away the class's earnings and refunds; its debt remains.
func (s *drrShare) forfeit() {
	s.deficit, s.credit = min(s.deficit, 0), min(s.credit, 0)
	s.offset()
}

// offset sets the credit off against the class's debt.
func (s *drrShare) offset() {
	if s.deficit <= 0 {
		net := max(-mostOwed, s.deficit+s.credit)
		s.deficit, s.credit = min(net, 0), max(net, 0)
	}
}

func (d drr) tag(l *level, s *share, head *Request) VirtualTime {
	i, from := l.subject.place, d.begins(l)
	quanta := int64(0) // it has been given back the cost of its head
	if s.credit < int64(head.Cost) {
		quanta = max(1, l.subject.needs(head.Cost))
	}
	if i < from {
		i += len(l.classes)
	}
	return VirtualTime(quanta<<distanceBits | int64(i-from))
}

func (d drr) charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) (moved bool) {
	served, ring := l.subject, len(l.classes)
	p.charged, p.start = VirtualTime(r.Cost), 0
	if !l.claimed && tag>>distanceBits == 0 {
		s.credit -= int64(r.Cost)
		p.start = onCredit
		return true
	}
	if !l.claimed {
		from := (served.place + ring - int(tag&(1<<distanceBits-1))) % ring // as it was when the turn was chosen
		d.round(l, served, from, r)
	}
	s.deficit = max(s.deficit-int64(r.Cost), -mostOwed)
	s.offset()
	if !l.claimed {
		head := served.head()
		l.cursor, l.stays = served, d.cursor == Stay && head != nil && served.needs(head.Cost) == 0
		if !l.stays {
			l.cursor = l.classes[(served.place+1)%ring]
		}
	}
	return true
}

// round adds the quanta that the classes earn, from the cursor on, until served can pay for r, and applies the caps.
func (d drr) round(l *level, served *class, from int, r *Request) {
	if l.outOfOrder {
		d.promotedRound(l, served, from, r)
		return
	}
	needed := served.needs(r.Cost)
	quanta := max(1, needed)
	earns := func(c *class, n int64) {
		c.tier.visits++
		c.earn(n, c.head())
		l.uncapped.put(c.place, false)
	}
	l.open.put(served.place, false) // it pays for r, whatever is its next head
	for at := range l.open.around(from) {
		before := (at-from+len(l.classes))%len(l.classes) < (served.place-from+len(l.classes))%len(l.classes)
		if !before && needed <= 1 {
			break // it was served before the ring was completed, so the classes after it earn nothing
		}
		earns(l.classes[at], quanta)
	}
	for i := range l.uncapped {
		for both := l.uncapped[i] & l.open[i]; both != 0; both &= both - 1 {
			earns(l.classes[i*64+bits.TrailingZeros64(both)], 0)
		}
	}
	served.earn(needed, r)
}

// promotedRound is round with the heads of busy lanes included. It visits all classes, since promotions are rare.
func (drr) promotedRound(l *level, served *class, from int, r *Request) {
	needed := served.needs(r.Cost)
	quanta := max(1, needed)
	for j := range l.classes {
		c := l.classes[(from+j)%len(l.classes)]
		c.tier.visits++
		if c == served {
			if c.earn(needed, r); needed <= 1 {
				quanta = 0
			}
		} else if head := c.starvedHead(); head != nil {
			c.earn(quanta, head)
			l.uncapped.put(c.place, true)
		}
	}
}

// onCredit is the start in the receipt of a request paid with credit.
const onCredit VirtualTime = 1

func (drr) refund(_ *level, s *share, _ *Request, p *receipt) (moved bool) {
	if p.start == onCredit {
		s.credit = min(s.credit+int64(p.charged), mostOwed)
		s.offset()
		return true
	}
	s.deficit = min(s.deficit+int64(p.charged), mostOwed)
	s.offset()
	return true
}

func (d drr) adjust(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	return VirtualTime(to) > p.charged && d.trueUp(l, s, r, to, p)
}

// trueUp returns the unused part of r's charge, or takes the cost beyond it.
func (drr) trueUp(_ *level, s *share, _ *Request, to Cost, p *receipt) (moved bool) {
	s.credit = max(-mostOwed, min(s.credit+int64(p.charged)-int64(to), mostOwed))
	s.offset()
	p.charged = VirtualTime(to)
	return true
}

func (drr) freshen(*level, *share) (moved bool) { return false }
