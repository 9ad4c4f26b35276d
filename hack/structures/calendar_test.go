package structures

import (
	"slices"

	"github.com/weir-epp/weir/internal/heap"
)

// calendar is a calendar queue: a year of buckets, each a sorted list of the flows whose keys fall on that day of any year. It
// takes constant time where keys are spread evenly, for which it changes the number and the length of its days.
type calendar struct {
	days  []list
	width uint64 // of a day
	today uint64 // number of the day, over all years, before which no key is
	n     int

	steps, most, began int // flows looked at, and the most by one operation
}

type list struct{ first, last *flow }

func newCalendar() *calendar { return &calendar{days: make([]list, 2), width: 1 << 20} }

func (c *calendar) count() {
	c.most = max(c.most, c.steps-c.began)
	c.began = c.steps
}

func (c *calendar) push(f *flow) {
	c.insert(f)
	if c.n > 2*len(c.days) {
		c.resize(2 * len(c.days))
	}
	c.count()
}

func (c *calendar) remove(f *flow) {
	c.take(f)
	if c.n < len(c.days)/2 && len(c.days) > 2 {
		c.resize(len(c.days) / 2)
	}
	c.count()
}

func (c *calendar) fix(f *flow, to heap.Key) {
	c.take(f)
	f.key = to
	c.insert(f)
	c.count()
}

func (c *calendar) insert(f *flow) {
	day := f.key.Value / c.width
	if day < c.today || c.n == 0 {
		c.today = day
	}
	f.bucket = int(day % uint64(len(c.days)))
	l := &c.days[f.bucket]
	after := l.last // later keys mostly come later
	for after != nil && f.key.Before(after.key) {
		after = after.prev
		c.steps++
	}
	f.prev = after
	if after != nil {
		f.next, after.next = after.next, f
	} else {
		f.next, l.first = l.first, f
	}
	if f.next != nil {
		f.next.prev = f
	} else {
		l.last = f
	}
	c.n++
}

func (c *calendar) take(f *flow) {
	l := &c.days[f.bucket]
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		l.first = f.next
	}
	if f.next != nil {
		f.next.prev = f.prev
	} else {
		l.last = f.prev
	}
	f.bucket, f.prev, f.next = -1, nil, nil
	c.n--
}

func (c *calendar) min() *flow {
	defer c.count()
	if c.n == 0 {
		return nil
	}
	for range c.days {
		c.steps++
		if f := c.days[c.today%uint64(len(c.days))].first; f != nil && f.key.Value/c.width <= c.today {
			return f
		}
		c.today++
	}
	var least *flow // a year without any
	for _, l := range c.days {
		c.steps++
		if l.first != nil && (least == nil || l.first.key.Before(least.key)) {
			least = l.first
		}
	}
	c.today = least.key.Value / c.width
	return least
}

// sample is the number of flows at the head by which the days get their length.
const sample = 25

// resize makes a year of so many days, each as long as three flows at the head are apart in the mean.
func (c *calendar) resize(days int) {
	var all []*flow
	for _, l := range c.days {
		for f := l.first; f != nil; f = f.next {
			all = append(all, f)
			c.steps++
		}
	}
	c.days = make([]list, days)
	slices.SortFunc(all, func(a, b *flow) int {
		if a.key.Before(b.key) {
			return -1
		}
		return 1
	})
	if last := min(sample, len(all)-1); last > 0 {
		c.width = max(1, 3*(all[last].key.Value-all[0].key.Value)/uint64(last))
	}
	c.n = 0
	for _, f := range all {
		c.insert(f)
		c.steps++
	}
}
