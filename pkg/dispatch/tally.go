package dispatch

import (
	"cmp"
	"slices"
)

// tally counts a flow's leases at each endpoint, and has the set of endpoints at which the flow is at its cap.
type tally struct {
	held []endpointCount // counts above 0, by endpoint
	full EndpointSet
}

type endpointCount struct {
	endpoint Endpoint
	n        int32
}

func (t *tally) find(e Endpoint) (int, bool) {
	return slices.BinarySearchFunc(t.held, e, func(c endpointCount, e Endpoint) int { return cmp.Compare(c.endpoint, e) })
}

// add counts one more lease at the endpoint; most is the cap.
func (t *tally) add(e Endpoint, most int) {
	i, ok := t.find(e)
	if !ok {
		t.held = slices.Insert(t.held, i, endpointCount{endpoint: e})
	}
	if t.held[i].n++; int(t.held[i].n) == most {
		t.full.Add(e)
	}
}

// remove counts one lease fewer.
func (t *tally) remove(e Endpoint, most int) {
	i, ok := t.find(e)
	if !ok {
		return
	}
	if t.held[i].n--; int(t.held[i].n) == most-1 {
		t.full.Remove(e)
	}
	if t.held[i].n == 0 {
		t.held = slices.Delete(t.held, i, i+1)
	}
}

// recount rebuilds the set for another cap.
func (t *tally) recount(most int) {
	t.full.Clear()
	for _, c := range t.held {
		if most > 0 && int(c.n) >= most {
			t.full.Add(c.endpoint)
		}
	}
}

// empty resets the tally but keeps its memory.
func (t *tally) empty() {
	t.held = t.held[:0]
	t.full.Clear()
}
