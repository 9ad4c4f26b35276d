package prefix

// trust compares an engine's reports with the expectation, over trustWindow requests.
type trust struct {
	reports            bool // it has reported cached tokens since it was cleared
	requests           int
	expected, reported int64
}

const trustWindow = 100

// Report notes the number of a prompt's tokens that its engine has reported as cached. If an engine reports less than
// half of the expectation over 100 requests, its endpoint is cleared and its limit halved; at three quarters one
// halving is undone.
func (x *Index) Report(placed Placement, cached int64) {
	var e *engine
	var distrusted, bound bool
	x.locked(func() {
		x.totals.Reported += cached
		if e = x.engines[placed.endpoint]; e != nil {
			distrusted, bound = e.hear(placed.Expected, cached)
		}
		if distrusted {
			x.totals.Distrusted++
		}
	})
	if !distrusted && !bound {
		return
	}
	x.changing.Lock()
	defer x.changing.Unlock()
	if distrusted {
		x.forget(e)
	}
	x.bound()
}

// hear compares a report with the expectation. It reports whether the endpoint must be cleared, and whether its limit
// changes.
func (e *engine) hear(expected, cached int64) (distrusted, bound bool) {
	t := &e.trust
	t.reports = t.reports || cached > 0
	if !t.reports || expected == 0 {
		return false, false
	}
	t.requests++
	t.expected += expected
	t.reported += min(cached, expected)
	if t.requests < trustWindow {
		return false, false
	}
	distrusted = 2*t.reported < t.expected
	switch {
	case distrusted:
		e.shrunk = min(e.shrunk+1, mostShrunk)
	case e.shrunk > 0 && 4*t.reported >= 3*t.expected:
		e.shrunk--
		bound = true
	}
	*t = trust{reports: true}
	return distrusted, distrusted || bound
}

// mostShrunk is the most halvings of a limit.
const mostShrunk = 6
