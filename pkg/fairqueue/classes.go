package fairqueue

import (
	"cmp"
	"slices"
)

// classes are the configured classes; without any, the one that everybody is in.
func (c *Config) classes() []ClassConfig {
	if len(c.Classes) == 0 {
		return []ClassConfig{{Quantum: 1}}
	}
	return c.Classes
}

// amongClasses is the discipline by which the classes of a tier share it.
func (c *Config) amongClasses() discipline { return drr{cursor: c.Cursor} }

// weight is the class's share of its tier.
func (c ClassConfig) weight() Weight { return min(Weight(c.Quantum)*WeightOne, MaxWeight) }

// classOf is the class of r, one that takes arrivals; the first one when r names none of these.
func (t *tier) classOf(r *Request) *class {
	if len(t.classes) > 1 && r.Path != nil {
		for _, c := range t.classes {
			if c.config.Name == r.Path.Class && !c.removed {
				return c
			}
		}
	}
	return t.classes[0]
}

// reclass gives the tier the configured classes, in their order. One that is listed no more takes no arrivals and drains
// behind them; one that stays keeps its waiters and what it is owed, and orders them as before until it is empty.
func (t *tier) reclass(q *FairRequestQueue) {
	old := t.classes
	t.classes, t.discipline = nil, q.config.amongClasses()
	for _, cc := range q.config.classes() {
		i := slices.IndexFunc(old, func(c *class) bool { return c.config.Name == cc.Name })
		if i < 0 {
			t.classes = append(t.classes, newClass(t, cc, q))
			continue
		}
		c := old[i]
		if o := cc.Order.implementation(q.config.Priorities); o != c.order {
			c.reorder(o)
		}
		c.config, c.removed, c.weight = cc, false, cc.weight()
		t.classes = append(t.classes, c)
	}
	for _, c := range old {
		if c.queued > 0 && !slices.Contains(t.classes, c) {
			c.removed = true
			t.classes = append(t.classes, c)
		}
	}
	if len(old) == 1 && len(t.classes) > 1 { // it had nobody to share with, so nothing was charged to it
		for _, c := range t.classes {
			t.discipline.begin(&t.level, &c.share)
		}
	}
}

// reorder gives every line of the class another order.
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

// dropClass forgets a class that has drained.
func (t *tier) dropClass(c *class) {
	t.classes = slices.DeleteFunc(t.classes, func(o *class) bool { return o == c })
}
