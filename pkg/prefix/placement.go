package prefix

import "github.com/weir-epp/weir/pkg/scheduling"

// Totals are the index's counts since its start, in tokens of placed prompts.
type Totals struct {
	// Prompt is their length, Best the part cached at the best endpoint for each prompt, and Chosen the part at the
	// chosen endpoint.
	Prompt, Best, Chosen int64
	// Reported is the part reported as cached by engines.
	Reported int64
	// Distrusted is how often an endpoint's index was halved and cleared, because its engine reported much less.
	Distrusted int64
}

// Size is the size of the index.
type Size struct {
	// Nodes is the number of blocks by endpoint.
	Nodes int
	// Blocks is the number of different blocks.
	Blocks int
}

// Placement is a prompt at an endpoint.
type Placement struct {
	endpoint scheduling.EndpointID
	prefix   *Prefix
	// Expected is the number of its tokens that the endpoint was expected to have cached.
	Expected int64
	// Reports is set if the endpoint has reported cached tokens before.
	Reports bool
}

// Believed returns the number of prompt tokens that a charge may take as cached: the endpoint's expected ones, or 0 if
// it has never reported any, since the expectation could not be verified.
func (p *Placement) Believed() int64 {
	if !p.Reports {
		return 0
	}
	return p.Expected
}

// Place notes that the prompt was granted the endpoint, with its ratings from Match.
func (x *Index) Place(p *Prefix, r *scheduling.Ratings, id scheduling.EndpointID) Placement {
	placed := Placement{endpoint: id, prefix: p, Expected: r.Cached(id)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.totals.Prompt += p.Tokens
	x.totals.Best += r.Best()
	x.totals.Chosen += placed.Expected
	if e := x.engines[id]; e != nil && !e.leaves {
		placed.Reports = e.trust.reports
		x.insert(e, p)
	}
	return placed
}

// PlaceAlso notes that another endpoint also reads the prompt, for the granted one.
func (x *Index) PlaceAlso(p *Prefix, id scheduling.EndpointID) Placement {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.engines[id]; e != nil && !e.leaves {
		x.insert(e, p)
	}
	return Placement{endpoint: id, prefix: p}
}

// TakeBack removes a prompt that no engine has read: it failed, or was preempted before it was sent. Blocks asked for
// by others meanwhile stay.
func (x *Index) TakeBack(placed Placement) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.engines[placed.endpoint]; e != nil && placed.prefix != nil {
		x.takeBack(e, placed.prefix.Keys)
	}
}

// Totals returns the counts so far.
func (x *Index) Totals() Totals {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.totals
}

// Size returns the size of the index.
func (x *Index) Size() Size {
	x.mu.Lock()
	defer x.mu.Unlock()
	return Size{Nodes: x.nodes.live, Blocks: x.holders.n}
}
