package dispatch

import (
	"cmp"
	"slices"

	"github.com/weir-epp/weir/pkg/stock"
)

// tally counts a tenant's leases at each endpoint, and has the set of endpoints at which the tenant is at its cap.
type tally struct {
	held []endpointCount // counts above 0, by endpoint
	full EndpointSet
}

type endpointCount struct {
	endpoint Endpoint
	n        int32
	tokens   stock.Tokens // of these leases
}

func (t *tally) find(e Endpoint) (int, bool) {
	return slices.BinarySearchFunc(t.held, e, func(c endpointCount, e Endpoint) int { return cmp.Compare(c.endpoint, e) })
}

// at returns the counts at the endpoint.
func (t *tally) at(e Endpoint) endpointCount {
	if i, ok := t.find(e); ok {
		return t.held[i]
	}
	return endpointCount{endpoint: e}
}

// change adds n leases and their tokens at the endpoint, or subtracts them; most is the cap.
func (t *tally) change(e Endpoint, n int32, tokens stock.Tokens, most limit) {
	i, ok := t.find(e)
	if !ok {
		t.held = slices.Insert(t.held, i, endpointCount{endpoint: e})
	}
	c := &t.held[i]
	c.n += n
	c.tokens += tokens
	if most.reached(int(c.n), c.tokens) {
		t.full.Add(e)
	} else {
		t.full.Remove(e)
	}
	if c.n == 0 {
		t.held = slices.Delete(t.held, i, i+1)
	}
}

// recount rebuilds the set for another cap.
func (t *tally) recount(most limit) {
	t.full.Clear()
	for _, c := range t.held {
		if most.reached(int(c.n), c.tokens) {
			t.full.Add(c.endpoint)
		}
	}
}

// empty resets the tally but keeps its memory.
func (t *tally) empty() {
	t.held = t.held[:0]
	t.full.Clear()
}
