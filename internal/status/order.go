package status

import (
	"cmp"
	"slices"
)

// Select sorts and filters a document's rows by a query.
func (d *Document) Select(q *Query) {
	d.Engines = slices.DeleteFunc(d.Engines, func(e Engine) bool { return !q.MatchesEngine(e.Address) })
	d.Flows = slices.DeleteFunc(d.Flows, func(f Flow) bool { return !q.MatchesFlow(f.Flow) })
	d.Rejections = slices.DeleteFunc(d.Rejections, func(r Rejection) bool { return !q.MatchesFlow(r.Flow) })
	if q.SortEngines != "endpoint" { // they are in this order already
		slices.SortStableFunc(d.Engines, func(a, b Engine) int { return cmp.Compare(a.by(q.SortEngines), b.by(q.SortEngines)) * -1 })
	}
	slices.SortStableFunc(d.Flows, func(a, b Flow) int {
		return cmp.Or(-cmp.Compare(a.by(q.SortFlows), b.by(q.SortFlows)), cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Tier, b.Tier))
	})
	d.Engines = cut(d.Engines, q.Engines, &d.LeftOut.Engines)
	d.Flows = cut(d.Flows, q.Flows, &d.LeftOut.Flows)
	d.Rejections = cut(d.Rejections, q.Rejections, &d.LeftOut.Rejections)
}

// cut returns the first rows, and adds the number of the others to left.
func cut[R any](rows []R, most int, left *int) []R {
	*left += max(0, len(rows)-most)
	return rows[:min(len(rows), most)]
}

func (e *Engine) by(order string) float64 {
	switch order {
	case "health":
		switch e.State() {
		case "down":
			return 2
		case "ready":
			return 0
		}
		return 1
	case "fill":
		return value(e.Fill)
	case "rate":
		return e.Answers
	case "failures":
		return e.Failures
	case "service":
		return e.Service
	case "oldest":
		return e.Oldest
	}
	return 0
}

func (f *Flow) by(order string) float64 {
	switch order {
	case "waiting":
		return float64(f.Waiting)
	case "since":
		return f.Since
	case "in-flight":
		return float64(f.InFlight)
	case "rate":
		return value(f.Requests)
	case "rejections":
		return value(f.Rejected)
	case "entitled":
		return value(f.Entitled)
	case "attained":
		return value(f.Attained)
	}
	return 0 // by name
}

// value returns a number, or -1 if it is absent.
func value(n *float64) float64 {
	if n == nil {
		return -1
	}
	return *n
}
