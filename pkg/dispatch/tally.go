package dispatch

import (
	"cmp"
	"slices"
)

// tally is what a flow has in flight at each endpoint, and at which of them that is as much as it may have there.
type tally struct {
	held []endpointCount // above 0, by endpoint
	full EndpointSet
}

type endpointCount struct {
	endpoint Endpoint
	n        int32
}

func (t *tally) find(e Endpoint) (int, bool) {
	return slices.BinarySearchFunc(t.held, e, func(c endpointCount, e Endpoint) int { return cmp.Compare(c.endpoint, e) })
}

// add counts one more at the endpoint, where most is as much as the flow may have.
func (t *tally) add(e Endpoint, most int) {
	i, ok := t.find(e)
	if !ok {
		t.held = slices.Insert(t.held, i, endpointCount{endpoint: e})
	}
	if t.held[i].n++; int(t.held[i].n) == most {
		t.full.Add(e)
	}
}

// remove counts one less.
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

// recount is told that most has changed.
func (t *tally) recount(most int) {
	t.full.Clear()
	for _, c := range t.held {
		if most > 0 && int(c.n) >= most {
			t.full.Add(c.endpoint)
		}
	}
}

// empty forgets everything, and keeps the memory.
func (t *tally) empty() {
	t.held = t.held[:0]
	t.full.Clear()
}
