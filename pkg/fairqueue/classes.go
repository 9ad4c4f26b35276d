package fairqueue

import (
	"cmp"
	"slices"
)

// classes returns the configured classes, or a single one without a name if none are configured.
func (c *Config) classes() []ClassConfig {
	if len(c.Classes) == 0 {
		return []ClassConfig{{Quantum: 1, Order: c.Order, Ageing: c.Ageing}}
	}
	return c.Classes
}

// numberOf returns the index in Classes of the i-th of classes; -1 if none are configured.
func (c *Config) numberOf(i int) int {
	if len(c.Classes) == 0 {
		return -1
	}
	return i
}

// order returns the order of the requests within each flow of the class.
func (c ClassConfig) order(priorities bool) order {
	return c.Order.implementation(priorities, c.Ageing)
}

// amongClasses returns the discipline that shares a tier among its classes.
func (c *Config) amongClasses() discipline { return drr{cursor: c.Cursor} }

// weight returns the class's weight among the classes of its tier.
func (c ClassConfig) weight() Weight { return min(Weight(c.Quantum)*WeightOne, MaxWeight) }

// classOf returns the class that r names, or the first class of its ring if r names no class of it that accepts
// arrivals.
func (t *tier) classOf(r *Request) *class {
	if len(t.classes) == 1 || r.Path == nil {
		return t.classes[0]
	}
	classes := t.ringOf(r.Path).classes
	for _, c := range classes {
		if c.config.Name == r.Path.Class && !c.removed {
			return c
		}
	}
	return classes[0]
}

// reclass sets the tier's classes to the configured ones, in their order. A class that stays keeps its waiters and its
// deficit, and its waiters are sorted again if its order has changed. A class that is no longer configured accepts no
// arrivals; while it has requests that wait or are in flight it drains, after the configured classes.
func (t *tier) reclass(q *FairRequestQueue) {
	old, list := t.classes, []*class(nil)
	alone := map[*ring]bool{} // those with a single class
	for _, r := range t.rings {
		alone[r], r.discipline = len(r.classes) == 1, q.config.amongClasses()
	}
	for number, cc := range q.config.classes() {
		i := slices.IndexFunc(old, func(c *class) bool { return c.config.Name == cc.Name && c.config.Ring == cc.Ring })
		if i < 0 {
			list = append(list, newClass(t, cc, q))
		} else {
			c := old[i]
			if o := cc.order(q.config.Priorities); o != c.order {
				c.reorder(o)
			}
			c.config, c.removed, c.weight = cc, false, cc.weight()
			list = append(list, c)
		}
		list[number].number = q.config.numberOf(number)
	}
	for _, c := range old {
		if slices.Contains(list, c) {
			continue
		}
		if c.removed, c.number = true, -1; c.drained() {
			c.gone = true
		} else {
			list = append(list, c)
		}
	}
	t.arrange(list)
	for _, r := range t.rings { // a ring's only class is never charged, so its share may be stale
		if alone[r] && r.shared() {
			for _, c := range r.classes {
				r.discipline.begin(&r.level, &c.share)
				c.changed()
			}
		}
	}
}

// reorder changes the order of every line of the class.
func (c *class) reorder(o order) {
	c.order = o
	for f := range c.siblings.leafFlows() {
		for _, fl := range f.lanes {
			waiting := slices.SortedFunc(fl.line.all(), func(a, b *Request) int { return cmp.Compare(a.seq, b.seq) })
			for _, r := range waiting {
				fl.line.remove(r)
			}
			fl.line.row = nil
			fl.shape()
			for _, r := range waiting {
				c.tier.queue.rank(c, r)
				fl.line.insert(r)
			}
			fl.head = fl.line.head()
			fl.retag()
			c.reindex(fl)
		}
	}
}

// drained reports whether a removed class has no request waiting or in flight. Requests in flight count, since they may
// return.
func (c *class) drained() bool { return c.removed && c.queued == 0 && c.inflight == 0 }

// dropClass removes a class that has drained.
func (t *tier) dropClass(c *class) {
	c.gone = true
	t.arrange(slices.DeleteFunc(t.classes, func(o *class) bool { return o == c }))
}
