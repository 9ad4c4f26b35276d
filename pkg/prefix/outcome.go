package prefix

import "github.com/weir-epp/weir/pkg/scheduling"

// Totals are what the index has counted since its start, in tokens of prompts that were placed.
type Totals struct {
	// Prompt is their length, Best what the endpoint that had most of each had, and Chosen what the chosen one had.
	Prompt, Best, Chosen int64
	// Reported is what engines have reported as cached.
	Reported int64
	// Distrusted is how often an endpoint's index was halved and cleared, because its engine reported much less.
	Distrusted int64
}

// Size is how large the index is.
type Size struct {
	// Nodes is the number of blocks by endpoint.
	Nodes int
	// Blocks is the number of different blocks.
	Blocks int
}

// trust compares what an engine reports with what was expected, over trustWindow requests.
type trust struct {
	reports            bool // it has reported cached tokens since it was cleared
	requests           int
	expected, reported int64
}

const trustWindow = 100

// Placement is a prompt at an endpoint.
type Placement struct {
	endpoint scheduling.EndpointID
	prefix   *Prefix
	// Expected is how many of its tokens the endpoint was taken to have cached.
	Expected int64
	// Reports is set if the endpoint has reported cached tokens before, so that a charge may count on them.
	Reports bool
}

// Place notes that the prompt was granted the endpoint, by the ratings that Match has returned for it.
func (x *Index) Place(p *Prefix, r *scheduling.Ratings, id scheduling.EndpointID) Placement {
	placed := Placement{endpoint: id, prefix: p, Expected: r.Cached(id)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.totals.Prompt += p.Tokens
	x.totals.Best += r.Best()
	x.totals.Chosen += placed.Expected
	if e := x.engines[id]; e != nil {
		placed.Reports = e.trust.reports
		x.insert(e, p.Keys)
	}
	return placed
}

// PlaceAlso notes that another endpoint reads the prompt as well, for the one that it was granted.
func (x *Index) PlaceAlso(p *Prefix, id scheduling.EndpointID) Placement {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.engines[id]; e != nil {
		x.insert(e, p.Keys)
	}
	return Placement{endpoint: id, prefix: p}
}

// TakeBack takes a prompt out again that no engine has read: it failed, or was preempted before it was sent. Blocks that
// others have asked for meanwhile stay.
func (x *Index) TakeBack(placed Placement) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.engines[placed.endpoint]; e != nil && placed.prefix != nil {
		x.takeBack(e, placed.prefix.Keys)
	}
}

// Report notes how many tokens of a prompt its engine has reported as cached. An endpoint whose engine reports less than
// half of the expectation over 100 requests is cleared, and its limit halved; one whose engine reports three quarters of it
// gets back a halving.
func (x *Index) Report(placed Placement, cached int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.totals.Reported += cached
	e := x.engines[placed.endpoint]
	if e == nil {
		return
	}
	t := &e.trust
	t.reports = t.reports || cached > 0
	if !t.reports || placed.Expected == 0 {
		return
	}
	t.requests++
	t.expected += placed.Expected
	t.reported += min(cached, placed.Expected)
	if t.requests < trustWindow {
		return
	}
	if 2*t.reported < t.expected {
		x.clear(e)
		x.totals.Distrusted++
		e.shrunk = min(e.shrunk+1, mostShrunk)
		x.bound()
		return
	}
	if e.shrunk > 0 && 4*t.reported >= 3*t.expected {
		e.shrunk--
		x.bound()
	}
	*t = trust{reports: true}
}

// mostShrunk is how often a limit is halved at most.
const mostShrunk = 6

// Totals returns what was counted so far.
func (x *Index) Totals() Totals {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.totals
}

// Size returns how large the index is.
func (x *Index) Size() Size {
	x.mu.Lock()
	defer x.mu.Unlock()
	return Size{Nodes: x.nodes.live, Blocks: x.holders.n}
}
