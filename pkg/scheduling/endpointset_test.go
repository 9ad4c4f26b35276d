package scheduling

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A set contains the endpoints added and not removed, with any pool, even endpoints in no pool.
func TestEndpointSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var set EndpointSet
	in := map[EndpointID]bool{}
	for range 2000 {
		id := EndpointID(r.IntN(200))
		switch r.IntN(50) {
		case 0:
			set.Clear()
			clear(in)
		default:
			if r.IntN(2) == 0 {
				set.Add(id)
				in[id] = true
			} else {
				set.Remove(id)
				delete(in, id)
			}
		}
		if set.Len() != len(in) || set.Has(id) != in[id] {
			t.Fatalf("%d in the set, want %d; %d: %t", set.Len(), len(in), id, set.Has(id))
		}
		if set.ring == nil || r.IntN(20) == 0 { // another pool
			ids := make([]EndpointID, 1+r.IntN(150))
			for i := range ids {
				ids[i] = EndpointID(r.IntN(200))
			}
			slices.Sort(ids)
			set.on(&ring{ids: slices.Compact(ids)})
		}
		if set.ring == nil {
			continue
		}
		words := set.on(set.ring)
		for p, id := range set.ring.ids {
			if words != nil && (words[p/64]>>(p%64)&1 != 0) != in[id] || words == nil && in[id] {
				t.Fatalf("endpoint %d at %d is wrong", id, p)
			}
		}
	}
}

// An exception stays in force through all changes of the pool.
func TestExceptFollowsThePool(t *testing.T) {
	b := three(t, mustNew(t))
	q := prepare(t, b, Ask{})
	var except EndpointSet
	except.Add(0)
	except.Add(7)
	at := func(want EndpointID) {
		t.Helper()
		if got := b.Place(q, BelowUpper, &except).Endpoint(); got != want {
			t.Fatalf("at %d, want %d", got, want)
		}
	}
	at(1)
	at(2)
	b.SetSnapshot(NewSnapshot(2, []Endpoint{ready(0, "10.0.0.1:80"), ready(2, "10.0.0.3:80"), ready(7, "10.0.0.8:80")}))
	at(2)
	except.Remove(7)
	at(7)
	except.Add(2)
	except.Add(7)
	at(NoEndpoint)
	if b.HasRoom(q, BelowUpper, &except) || b.HasReady(q, &except) || !b.HasRoom(q, BelowUpper, nil) || !b.Meets(q, &except) {
		t.Error("the answers to questions differ from the choice")
	}
	except.Remove(0)
	at(0)
}
