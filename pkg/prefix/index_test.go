package prefix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// blocks is a prompt of so many blocks of 256 tokens: those of the group, then those of its own.
func blocks(group, shared, own uint64, n int) *Prefix {
	p := &Prefix{Tokens: int64(n) * 256, Bytes: uint32(n) << 10}
	key := mixed(group + 12345)
	for i := range n {
		if uint64(i) >= shared {
			key = mixed(key + own)
		} else {
			key = mixed(key)
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
		for _, g := range []*segment{&e.fresh, &e.proven} {
			n, newer := 0, uint32(0)
			for i := g.head; i != 0; i = x.nodes.at(i).older {
				y := x.nodes.at(i)
				if y.endpoint() != id || y.proven() != (g == &e.proven) || y.newer != newer || x.find(y.key, id) != i {
					t.Fatalf("node %d of endpoint %d: %+v", i, id, y)
				}
				holders[y.key]++
				newer = i
				n++
			}
			if n != g.n || g.tail != newer {
				t.Fatalf("endpoint %d has %d in a segment of %d", id, n, g.n)
			}
			nodes += n
		}
		if e.fresh.n+e.proven.n > e.limit {
			t.Fatalf("endpoint %d has %d and %d of %d", id, e.fresh.n, e.proven.n, e.limit)
		}
	}
	if x.nodes.live != nodes || x.table.n != nodes || x.holders.n != len(holders) {
		t.Fatalf("%d nodes of %d blocks; counted are %d, %d and %d", nodes, len(holders), x.nodes.live, x.table.n, x.holders.n)
	}
	for key, n := range holders {
		if x.holders.of(key) != n {
			t.Fatalf("block %x has %d holders, want %d", key, x.holders.of(key), n)
		}
	}
}

// However small the limit, an endpoint's blocks stay closed under prefixes: no block is there without the one before it.
func TestClosedUnderPrefixes(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 2))
		x, ids := newIndex(2, 128*60) // 60 blocks, so the least of 64
		var all []*Prefix
		for range 2000 {
			p := blocks(r.Uint64N(6), r.Uint64N(15), r.Uint64N(20), 1+r.IntN(90))
			if r.IntN(2) == 0 && len(all) > 0 {
				p = all[max(0, len(all)-1-r.IntN(8))] // again
			}
			all = append(all, p)
			x.put(p, ids[r.IntN(2)])
			checkIndex(t, x)
			for _, id := range ids {
				held := 0
				for held < len(p.Keys) && x.find(p.Keys[held], id) != 0 {
					held++
				}
				for _, key := range p.Keys[held:] {
					if x.find(key, id) != 0 {
						t.Fatalf("seed %d: a block is left without the %d before it", seed, held)
					}
				}
			}
		}
	}
}

// An endpoint loses its blocks when it leaves, is not ready, or another engine takes its ID; others keep theirs.
func TestEndpointsThatChange(t *testing.T) {
	for name, change := range map[string]func(*Endpoint){
		"not ready": func(e *Endpoint) { e.Ready = false }, "another key": func(e *Endpoint) { e.Key = "other" }, "gone": func(e *Endpoint) { e.ID = 9 },
	} {
		x, ids := newIndex(3, 0)
		p := blocks(1, 5, 1, 8)
		for _, id := range ids {
			x.put(p, id)
		}
		all, _ := pool(3, 0)
		change(&all[1])
		x.SetEndpoints(all)
		checkIndex(t, x)
		if r := x.Match(p, ids); r.Cached(1) != 0 || r.Cached(0) != 8*256 || r.Cached(2) != 8*256 {
			t.Errorf("%s: %+v", name, r)
		}
		x.SetEndpoints(nil)
		if size := x.Size(); size != (Size{}) {
			t.Errorf("%s: %+v in an empty pool", name, size)
		}
		x.put(p, 0) // a grant of before
		checkIndex(t, x)
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
	if a, c := x.engines[0], x.engines[2]; a.fresh.n != 750 || c.fresh.n != 1500 || x.Size().Nodes != 3000 {
		t.Errorf("%d and %d of %d", a.fresh.n, c.fresh.n, x.Size().Nodes)
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

// In a pool of more than 64 endpoints the blocks that most of them have are every endpoint's, and those beyond are found.
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

// A session is worth what its last prompt was, in steps, and nothing at other endpoints.
func TestSession(t *testing.T) {
	x, ids := newIndex(2, 0)
	p := Session(77, 10_000)
	x.put(&p, 1)
	next := Session(77, 13_000)
	if r := x.Match(&next, ids); r.Cached(1) < 9_000 || r.Cached(1) > 10_000 || r.Cached(0) != 0 {
		t.Errorf("%+v", r)
	}
	again, short, foreign := Session(77, 10_000), Session(77, 100), Session(78, 10_000)
	if r := x.Match(&again, ids); r.Cached(1) != 10_000 {
		t.Errorf("%+v", r)
	}
	if r := x.Match(&short, ids); r.Cached(1) != 100 {
		t.Errorf("%+v", r)
	}
	if r := x.Match(&foreign, ids); r.Cached(1) != 0 {
		t.Errorf("%+v", r)
	}
}

// An engine that reports much less than was expected over 100 requests is cleared, and remembers half as much; one that has
// never reported anything is believed, as is one that reports enough.
func TestTrust(t *testing.T) {
	for _, c := range []struct {
		reported int64
		cleared  bool
	}{{0, false}, {20, true}, {1200, true}, {1300, false}, {2560, false}} {
		x, ids := newIndex(1, 0)
		p := blocks(1, 10, 1, 10)
		limit := x.engines[0].limit
		for i := range 101 {
			r := x.Match(p, ids)
			placed := x.Place(p, &r, 0)
			if placed.Reports != (i > 0 && c.reported > 0) {
				t.Fatalf("reported %d: request %d is placed as %+v", c.reported, i, placed)
			}
			x.Report(placed, c.reported)
		}
		now := x.Totals()
		if cleared := now.Distrusted == 1 && x.engines[0].limit == limit/2 && x.Size().Nodes == 0; cleared != c.cleared || !cleared && x.Size().Nodes != 10 {
			t.Errorf("reported %d of 2560: %+v, limit %d of %d, %+v", c.reported, now, x.engines[0].limit, limit, x.Size())
		}
		if now.Prompt != 101*2560 || now.Best != 100*2560 || now.Chosen != 100*2560 || now.Reported != 101*c.reported {
			t.Errorf("%+v", now)
		}
	}
}

// An endpoint that was halved is believed again, step by step, once its reports are about what was expected: otherwise a few
// bad hundreds in a week would leave its history too small for ever. Half of the expectation is not enough for that.
func TestTrustComesBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		percent  int64 // of the expectation, reported after the halvings
		hundreds int
		halved   uint8
	}{{"all of it", 100, 1, 1}, {"all of it, twice", 100, 2, 0}, {"and not beyond", 100, 5, 0}, {"most of it", 75, 1, 1}, {"too little", 60, 5, 2}} {
		x := New(DefaultConfig())
		x.SetEndpoints([]Endpoint{{ID: 0, Key: "a", Ready: true}})
		p := &Prefix{Keys: []uint64{1, 2, 3, 4}, Ends: []uint32{1024, 2048, 3072, 4096}, Bytes: 4096, Tokens: 1000}
		limit := x.engines[0].limit
		hundred := func(percent int64) {
			for done := 0; done < trustWindow; {
				r := x.Match(p, []scheduling.EndpointID{0})
				placed := x.Place(p, &r, 0)
				if placed.Expected > 0 {
					done++
				}
				x.Report(placed, max(1, placed.Expected*percent/100))
			}
		}
		for range 2 {
			hundred(10)
		}
		if x.engines[0].limit != limit/4 {
			t.Fatalf("%s: a limit of %d after two bad hundreds, want a quarter of %d", c.name, x.engines[0].limit, limit)
		}
		for range c.hundreds {
			hundred(c.percent)
		}
		if got := x.engines[0].limit; got != limit>>c.halved {
			t.Errorf("%s: a limit of %d, want %d", c.name, got, limit>>c.halved)
		}
	}
}
