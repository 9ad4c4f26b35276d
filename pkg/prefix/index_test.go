package prefix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-epp/weir/internal/splitmix"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// blocks is a prompt of so many blocks of 256 tokens: those of the group, then those of its own.
func blocks(group, shared, own uint64, n int) *Prefix {
	p := &Prefix{Tokens: int64(n) * 256, Bytes: uint32(n) << 10}
	key := splitmix.Mix(group + 12345)
	for i := range n {
		if uint64(i) >= shared {
			key = splitmix.Mix(key + own)
		} else {
			key = splitmix.Mix(key)
		}
		p.Keys, p.Ends = append(p.Keys, key), append(p.Ends, uint32(i+1)<<10)
	}
	return p
}

// pool is n ready endpoints with so many KV tokens.
func pool(n int, tokens int64) (all []Endpoint, ids []scheduling.EndpointID) {
	for i := range n {
		all = append(all, Endpoint{ID: scheduling.EndpointID(i), Key: fmt.Sprint("pod-", i), Tokens: tokens, Ready: true})
		ids = append(ids, scheduling.EndpointID(i))
	}
	return all, ids
}

func newIndex(n int, tokens int64) (*Index, []scheduling.EndpointID) {
	x := New(DefaultConfig())
	all, ids := pool(n, tokens)
	x.SetEndpoints(all)
	return x, ids
}

func (x *Index) put(p *Prefix, at scheduling.EndpointID) Placement {
	return x.Place(p, &scheduling.Ratings{}, at)
}

// A prompt is worth at each endpoint what the longest prompt that begins alike has left there.
func TestMatch(t *testing.T) {
	x, ids := newIndex(4, 0)
	x.put(blocks(1, 10, 7, 20), 2)
	x.put(blocks(1, 10, 8, 12), 3)
	x.put(blocks(5, 3, 1, 9), 1)
	r := x.Match(blocks(1, 10, 7, 30), ids)
	if want := []scheduling.Cached{{ID: 2, Tokens: 20 * 256}, {ID: 3, Tokens: 10 * 256}}; !slices.Equal(r.Above, want) || r.Floor != 0 || r.Prompt != 30*256 {
		t.Errorf("%+v, want %v", r, want)
	}
	if len(r.Near) != 0 || r.Best() != 20*256 || r.Cached(3) != 10*256 || r.Cached(0) != 0 {
		t.Errorf("%+v", r)
	}
	if r := x.Match(blocks(1, 10, 7, 30), ids[3:]); len(r.Above) != 1 || r.Above[0].ID != 3 {
		t.Errorf("in a lane without the best: %+v", r)
	}
	if r := x.Match(blocks(9, 9, 9, 30), ids); len(r.Above) != 0 || len(r.Near) != 4 {
		t.Errorf("a cold prompt: %+v", r)
	}
}

// A match agrees with a list of everything that was placed, whatever is placed, taken back, cleared and asked for, as long
// as the limit forgets nothing.
func TestMatchAgainstList(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 3 + r.IntN(8)
		x, ids := newIndex(n, 0)
		had := make([][][]uint64, n) // the prompts placed at each
		for range 600 {
			p := blocks(r.Uint64N(4), r.Uint64N(12), r.Uint64N(6), 1+r.IntN(20))
			switch at := r.IntN(n); r.IntN(10) {
			case 0:
				x.Clear(ids[at])
				had[at] = nil
			case 1: // a failure leaves no more than was there
				x.TakeBack(x.put(p, ids[at]))
			default:
				x.put(p, ids[at])
				had[at] = append(had[at], p.Keys)
			}
			asked := blocks(r.Uint64N(4), r.Uint64N(12), r.Uint64N(6), 1+r.IntN(20))
			got := x.Match(asked, ids)
			for i, prompts := range had {
				longest := 0
				for _, keys := range prompts {
					same := 0
					for same < len(keys) && same < len(asked.Keys) && keys[same] == asked.Keys[same] {
						same++
					}
					longest = max(longest, same)
				}
				if cached := got.Cached(ids[i]); cached != int64(longest)*256 {
					t.Fatalf("seed %d: endpoint %d has %d tokens, want %d", seed, i, cached, longest*256)
				}
			}
			checkIndex(t, x)
		}
	}
}

// checkIndex checks the invariants of doc.go.
func checkIndex(t *testing.T, x *Index) {
	t.Helper()
	holders, nodes := map[uint64]int{}, 0
	for id, e := range x.engines {
		nodes += e.all.size()
		for at := range each(x, &e.all.fresh, byEndpoint) {
			holders[x.nodes.at(at).key>>16]++
		}
		for at := range each(x, &e.all.proven, byEndpoint) {
			holders[x.nodes.at(at).key>>16]++
		}
		for owner, h := range append([]share{e.all}, e.owned[1:]...) {
			by := min(owner, byOwner)
			for _, l := range []*list{&h.fresh, &h.proven} {
				n := 0
				for at := range each(x, l, by) {
					y := x.nodes.at(at)
					if y.at != id || y.has(provenMark) != (l == &h.proven) || x.find(y.key, id) != at || owner > 0 && y.owner() != owner {
						t.Fatalf("node %d of endpoint %d: %+v", at, id, y)
					}
					n++
				}
				if n != int(l.n) {
					t.Fatalf("endpoint %d has %d in a list of %d", id, n, l.n)
				}
			}
		}
		common := 0
		for _, l := range []*list{&e.all.fresh, &e.all.proven} {
			for at := range each(x, l, byEndpoint) {
				if x.nodes.at(at).owner() == 0 {
					common++
				}
			}
		}
		for i := range e.owned {
			common += e.owned[i].size()
		}
		if common != e.all.size() || e.all.size() > e.limit {
			t.Fatalf("endpoint %d has %d of %d, and the flows %d", id, e.all.size(), e.limit, common)
		}
	}
	if x.nodes.live != nodes || x.table.n != nodes || x.holders.n != len(holders) {
		t.Fatalf("%d nodes of %d blocks; counted are %d, %d and %d", nodes, len(holders), x.nodes.live, x.table.n, x.holders.n)
	}
	for key, n := range holders {
		if x.holders.of(key<<16) != n {
			t.Fatalf("block %x has %d holders, want %d", key, x.holders.of(key), n)
		}
	}
}

// each yields the nodes of a list, and checks that it leads back.
func each(x *Index, l *list, by int) func(func(uint32) bool) {
	return func(yield func(uint32) bool) {
		newer := uint32(0)
		for at := l.head; at != 0; at = x.nodes.at(at).links[by].older {
			if x.nodes.at(at).links[by].newer != newer {
				panic("the list does not lead back")
			}
			if newer = at; !yield(at) {
				return
			}
		}
		if l.tail != newer {
			panic("the list ends elsewhere")
		}
	}
}

// However small the limit, an endpoint's blocks stay closed under prefixes: no block is there without the one before it,
// whichever flows ask for it, fail, or take the room, and whatever the engine says of its cache.
func TestClosedUnderPrefixes(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 2))
		x, ids := newIndex(2, 128*60) // 60 blocks, so the least of 64
		flows := 1 + 2*(seed%3)
		var all []*Prefix
		var under []Placement
		before := map[uint64]uint64{} // by block
		for range 2000 {
			p := blocks(r.Uint64N(6), r.Uint64N(15), r.Uint64N(20), 1+r.IntN(90))
			if r.IntN(2) == 0 && len(all) > 0 {
				p = all[max(0, len(all)-1-r.IntN(8))] // again
			}
			again := *p
			again.Flow = r.Uint64N(flows)
			all = append(all, &again)
			for i := 1; i < len(p.Keys); i++ {
				before[p.Keys[i]>>16] = p.Keys[i-1]
			}
			under = append(under, x.put(&again, ids[r.IntN(2)]))
			switch r.IntN(20) {
			case 0, 1, 2, 3, 4:
				i := r.IntN(len(under))
				x.TakeBack(under[i])
				under = slices.Delete(under, i, i+1)
			case 5:
				x.SetSignals(ids[r.IntN(2)], scheduling.Signals{Known: true, CacheTokens: 256 * (20 + r.Int64N(200)), Produced: 100 - r.Int64N(8)/7})
			case 6:
				if r.IntN(10) == 0 {
					x.Clear(ids[r.IntN(2)])
				}
			}
			checkIndex(t, x)
			for _, e := range x.order {
				for _, l := range []*list{&e.all.fresh, &e.all.proven} {
					for at := range each(x, l, byEndpoint) {
						if parent, follows := before[x.nodes.at(at).key>>16]; follows && x.find(parent, e.id) == 0 {
							t.Fatalf("seed %d: a block is left without the one before it", seed)
						}
					}
				}
			}
		}
	}
}

// A prompt that failed leaves the part that others have asked for, also where these have lost the rest of theirs.
func TestTakeBackLeavesWhatOthersHave(t *testing.T) {
	x, ids := newIndex(1, 256*100) // 200 blocks, half of them proven
	failing := x.put(blocks(1, 4, 7, 20), 0)
	x.put(blocks(1, 4, 8, 30), 0)
	for g := range uint64(12) { // others are proven, so the four in common are no longer
		p := blocks(10+g, 9, 0, 9)
		x.put(p, 0)
		x.put(p, 0)
	}
	x.TakeBack(failing)
	checkIndex(t, x)
	if r := x.Match(blocks(1, 4, 8, 30), ids); r.Cached(0) != 30*256 {
		t.Errorf("%+v", r)
	}
	if r := x.Match(blocks(1, 4, 7, 20), ids); r.Cached(0) != 4*256 {
		t.Errorf("%+v", r)
	}
}

// A prompt that failed leaves nothing behind; blocks that another request has asked for meanwhile stay.
func TestTakeBack(t *testing.T) {
	x, ids := newIndex(2, 0)
	x.put(blocks(1, 4, 0, 4), 0)
	failed := x.put(blocks(1, 4, 7, 20), 0)
	x.put(blocks(1, 4, 7, 9), 0)
	x.TakeBack(failed)
	checkIndex(t, x)
	if r := x.Match(blocks(1, 4, 7, 20), ids); r.Cached(0) != 9*256 {
		t.Errorf("%+v, want 9 blocks", r)
	}
	x.TakeBack(Placement{})
	x.SetEndpoints(nil)
	x.TakeBack(failed)
}

// One bound holds for all endpoints together, in proportion to their caches, and none has more than twice its own.
func TestBounds(t *testing.T) {
	x := New(Config{MaxNodes: 3000})
	all, ids := pool(3, 256_000)
	all[2].Tokens *= 2
	x.SetEndpoints(all)
	for i := range 40 {
		for _, id := range ids {
			x.put(blocks(uint64(i)+1, 0, uint64(id), 100), id)
		}
	}
	checkIndex(t, x)
	if a, c := x.engines[0], x.engines[2]; a.all.size() != 750 || c.all.size() != 1500 || x.Size().Nodes != 3000 {
		t.Errorf("%d and %d of %d", a.all.size(), c.all.size(), x.Size().Nodes)
	}
	x, ids = newIndex(2, 256_000)
	for i := range 40 {
		x.put(blocks(uint64(i)+1, 0, 1, 100), ids[0])
	}
	if n := x.Size().Nodes; n != 2000 {
		t.Errorf("%d nodes, want twice the cache", n)
	}
}

// Prompts that nobody repeats flush no prefix that somebody does.
func TestUniquePromptsFlushNothing(t *testing.T) {
	x, ids := newIndex(1, 256_000)
	var shared []*Prefix
	for g := range uint64(9) {
		p := blocks(g+1, 100, 0, 100)
		x.put(p, ids[0])
		x.put(p, ids[0])
		shared = append(shared, p)
	}
	for i := range uint64(1000) {
		x.put(blocks(1000+i, 0, i, 50), ids[0])
	}
	checkIndex(t, x)
	for g, p := range shared {
		if r := x.Match(p, ids); r.Cached(0) != 100*256 {
			t.Errorf("of group %d %d tokens are left", g, r.Cached(0))
		}
	}
}

// In a pool of more than 64 endpoints the blocks that all of them have are the floor, and those beyond are found.
func TestFloor(t *testing.T) {
	x, ids := newIndex(200, 0)
	for _, id := range ids {
		x.put(blocks(1, 4, 1, 4), id)
	}
	for _, id := range ids[10:40] {
		x.put(blocks(1, 4, 7, 4+int(id)), id)
	}
	r := x.Match(blocks(1, 4, 7, 100), ids)
	if r.Floor != 4*256 || len(r.Above) != 30 || r.Cached(39) != 43*256 || r.Cached(10) != 14*256 || r.Cached(41) != 4*256 {
		t.Errorf("%+v", r)
	}
	if r = x.Match(blocks(1, 4, 9, 100), ids); r.Floor != 4*256 || len(r.Above) != 0 || len(r.Near) != scheduling.MaxNear {
		t.Errorf("%+v", r)
	}
}

// No endpoint is taken to have what it never got, however many others have it; those with most are named, and of the others
// that have a part not always the same.
func TestPartOfALargePool(t *testing.T) {
	x, ids := newIndex(500, 0)
	for _, id := range ids[:300] {
		x.put(blocks(1, 120, 0, 120), id)
	}
	for _, id := range ids[290:310] {
		x.put(blocks(1, 120, 5, 150), id)
	}
	named := map[scheduling.EndpointID]bool{}
	for own := range uint64(50) {
		r := x.Match(blocks(1, 120, 6+own, 150), ids)
		if r.Floor != 0 || len(r.Above) != scheduling.MaxAbove || !slices.IsSortedFunc(r.Above, func(a, b scheduling.Cached) int { return int(a.ID - b.ID) }) {
			t.Fatalf("%+v", r)
		}
		for _, c := range r.Above {
			if named[c.ID] = true; c.ID >= 310 || c.Tokens != 120*256 {
				t.Fatalf("%+v", c)
			}
		}
	}
	if len(named) < 290 {
		t.Errorf("%d of 310 are ever named", len(named))
	}
	r := x.Match(blocks(1, 120, 5, 150), ids)
	for _, id := range ids[290:310] {
		if r.Cached(id) != 150*256 {
			t.Errorf("endpoint %d has %d tokens", id, r.Cached(id))
		}
	}
	// A lane of which only a few lack it, while others in the pool have it.
	if r := x.Match(blocks(1, 120, 0, 120), ids[150:400]); r.Floor != 0 || r.Cached(399) != 0 {
		t.Errorf("in a part of the pool: %+v", r)
	}
}

// Replicas rank endpoints for a cold prompt alike, whatever IDs they give them and whatever else they know; prompts that
// begin alike have one ranking, others another, and all endpoints come first for some.
func TestNear(t *testing.T) {
	x, ids := newIndex(20, 0)
	y := New(DefaultConfig())
	var other []Endpoint
	var otherIDs []scheduling.EndpointID
	for i := range 20 {
		other = append(other, Endpoint{ID: scheduling.EndpointID(100 + i), Key: fmt.Sprint("pod-", 19-i), Ready: true})
		otherIDs = append(otherIDs, scheduling.EndpointID(100+i))
	}
	y.SetEndpoints(other)
	y.put(blocks(99_999, 9, 9, 9), 103)
	first := map[scheduling.EndpointID]int{}
	for g := range uint64(2000) {
		a, b := x.Match(blocks(g+1, 10, 1, 20), ids), y.Match(blocks(g+1, 10, 2, 30), otherIDs)
		if len(a.Near) != scheduling.MaxNear {
			t.Fatalf("%+v", a)
		}
		for i := range a.Near {
			if a.Near[i] != 119-b.Near[i] {
				t.Fatalf("group %d: %v and %v", g, a.Near, b.Near)
			}
		}
		first[a.Near[0]]++
	}
	for _, id := range ids {
		if n := first[id]; n < 60 || n > 140 {
			t.Errorf("endpoint %d is first %d times of 100 on average", id, n)
		}
	}
}
