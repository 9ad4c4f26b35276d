package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// waiting is a request prepared at one time and placed later.
type waiting struct {
	ask   Ask
	q     *Query
	known *Ratings // nil: nothing
}

// world applies the same random operations to a board and to the oracle.
type world struct {
	t       *testing.T
	r       *rand.Rand
	s       *Scheduler
	rates   bool // prompts are known
	watches bool // and some of their first tokens are seen
	b       *Board
	o       *oracle
	version uint64
	known   []Endpoint // all endpoints that have ever been in the pool, by ID
	entries []string   // the entries that subsets are drawn from
	queue   []waiting
	held    []Reservation // as the oracle's leases
}

var (
	worldAddresses = []string{"10.0.0.1:80", "10.0.0.1:81", "10.0.0.2:80", "10.0.0.3:80", "[::1]:80", "[::1]:81", "[2001:db8::7]:80"}
	worldEntries   = []string{"10.0.0.1", "10.0.0.1:81", "10.0.0.2:80", "10.0.0.2:99", "10.0.0.9", "::1", "[::1]:81", "[2001:db8:0::7]:80", "10.0.0.3"}
	worldModels    = []string{"", "a", "b", "c"}
)

func TestAgainstOracle(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newWorld(t, seed, len(worldAddresses)).run(600) })
	}
	for seed := range uint64(8) { // large lanes, which are not searched one by one
		t.Run(fmt.Sprint("many-", seed), func(t *testing.T) { newWorld(t, seed, 3*few).run(300) })
	}
}

func FuzzBoard(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint8(10*seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size uint8) { newWorld(t, seed, 1+int(size)%90).run(30) })
}

// newWorld returns an empty pool, and size endpoints that may join it.
func newWorld(t *testing.T, seed uint64, size int) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), entries: slices.Clone(worldEntries)}
	w.o = &oracle{
		bounds: map[EndpointID][2]int64{}, others: map[EndpointID]int64{}, last: NoEndpoint, first: seed%4 == 3,
		most: map[EndpointID]int64{}, least: map[EndpointID]int64{}, theirs: map[EndpointID]int64{},
	}
	w.s = mustNew(t, func(c *Config) {
		if w.o.first {
			c.TieBreak = TieFirst
		}
	})
	w.rates, w.watches = seed%2 == 1, seed%6 == 1 || seed%6 == 3
	w.b = NewBoard(w.s, nil)
	for id := range size {
		e := Endpoint{ID: EndpointID(id + id/5*3), Address: fmt.Sprintf("10.1.%d.%d:80", id/16, id%16)}
		if id < len(worldAddresses) {
			e.Address = worldAddresses[id]
		} else {
			w.entries = append(w.entries, e.Address)
		}
		w.known = append(w.known, e)
	}
	return w
}

func (w *world) run(steps int) {
	for range steps {
		w.step()
		w.check()
	}
}

func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 3 || w.version == 0:
		w.changePool()
	case n < 8:
		w.changeOne()
	case n < 28:
		w.arrive()
	case n < 66:
		w.place()
	case n < 71:
		w.placeAt()
	case n < 74:
		w.tellForeign()
	case n < 78:
		w.cost()
	case n < 84:
		w.read()
	default:
		w.release()
	}
}

// changeOne changes one endpoint of the pool.
func (w *world) changeOne() {
	if len(w.o.pool) == 0 {
		return
	}
	pool := slices.Clone(w.o.pool)
	switch e := &pool[w.r.IntN(len(pool))]; w.r.IntN(4) {
	case 0:
		e.Ready = !e.Ready
	case 3:
		e.Lacks ^= w.need()
	case 1:
		e.MaxInFlight = w.r.IntN(3)
	default:
		w.bound(e.ID, w.o.bounds[e.ID][0], w.o.bounds[e.ID][0]+1+w.r.Int64N(3_000_000))
		return
	}
	w.setPool(pool)
}

func (w *world) setPool(pool []Endpoint) {
	w.version++
	w.o.pool = pool
	for id := range w.o.others {
		if !slices.ContainsFunc(pool, func(e Endpoint) bool { return e.ID == id && e.Ready }) {
			delete(w.o.others, id)
			delete(w.o.theirs, id)
		}
	}
	w.b.SetSnapshot(NewSnapshot(w.version, pool))
}

// tellForeign changes others' requests at an endpoint, which may be outside the pool.
func (w *world) tellForeign() {
	e, n := w.known[w.r.IntN(len(w.known))], w.r.IntN(5)-1
	ready := slices.ContainsFunc(w.o.pool, func(o Endpoint) bool { return o.ID == e.ID && o.Ready })
	if ready {
		w.o.others[e.ID], w.o.theirs[e.ID] = int64(max(0, n)), int64(7*max(0, n))
	}
	if got := w.b.SetForeign(e.ID, n, int64(7*max(0, n))); got != ready {
		w.t.Fatalf("endpoint %d is ready: %t, want %t", e.ID, got, ready)
	}
}

func (w *world) bound(id EndpointID, lower, upper int64) {
	w.o.bounds[id] = [2]int64{lower, upper}
	if !w.b.SetBounds(id, lower, upper) {
		w.t.Fatalf("endpoint %d is not in the pool", id)
	}
}

// boundCost bounds an endpoint's cost, or removes the bound.
func (w *world) boundCost(id EndpointID) {
	w.o.most[id] = max(0, w.r.Int64N(60)-20)
	w.o.least[id] = w.o.most[id] - w.o.most[id]*w.r.Int64N(3)/4
	if !w.b.SetTokenBounds(id, w.o.least[id], w.o.most[id]) {
		w.t.Fatalf("endpoint %d is not in the pool", id)
	}
}

// cost raises or lowers the cost of a placed request, and sometimes changes a bound.
func (w *world) cost() {
	if len(w.o.pool) > 0 && w.r.IntN(4) == 0 {
		w.boundCost(w.o.pool[w.r.IntN(len(w.o.pool))].ID)
	}
	if len(w.o.leases) > 0 {
		w.costs(w.r.IntN(len(w.o.leases)), w.r.Int64N(40))
	}
}

func (w *world) costs(i int, cost int64) {
	w.b.AddTokens(w.o.leases[i], cost-w.o.costs[i])
	w.o.costs[i] = cost
}

func (w *world) changePool() {
	var pool []Endpoint
	listing, lacking := w.r.IntN(3) > 0, w.r.IntN(2) > 0
	for _, e := range w.known {
		if w.r.IntN(4) == 0 {
			continue
		}
		e.Ready = w.r.IntN(4) > 0
		if listing && w.r.IntN(3) > 0 {
			e.Models = [][]string{{"a"}, {"b"}, {"a", "b"}}[w.r.IntN(3)]
		}
		if w.r.IntN(3) == 0 {
			e.MaxInFlight = 1 + w.r.IntN(4)
		}
		if lacking && w.r.IntN(2) == 0 {
			e.Lacks = w.twoNeeds()
		}
		pool = append(pool, e)
	}
	w.setPool(pool)
	for _, e := range pool {
		lower := []int64{0, 900_000, 1_800_000, 2_000_000}[w.r.IntN(4)]
		w.bound(e.ID, lower, lower+[]int64{1, 400_000, 1_000_000}[w.r.IntN(3)])
		w.boundCost(e.ID)
	}
}

// need draws a need.
func (w *world) need() Needs { return 1 << w.r.IntN(3) }

// twoNeeds draws one or two.
func (w *world) twoNeeds() Needs {
	one := w.need()
	return one | w.need()
}

func (w *world) arrive() {
	ask := Ask{Model: worldModels[w.r.IntN(len(worldModels))]}
	if w.r.IntN(3) == 0 {
		ask.Needs = w.twoNeeds()
	}
	if w.r.IntN(2) == 0 {
		ask.Subset.Set = true
		n := 1 + w.r.IntN(3)
		if w.r.IntN(3) == 0 {
			n = 1 + w.r.IntN(len(w.entries))
		}
		for range n {
			ask.Subset.Entries = append(ask.Subset.Entries, w.entries[w.r.IntN(len(w.entries))])
		}
	}
	q, err := w.s.Prepare(w.b.Snapshot(), ask)
	if err == nil {
		x := waiting{ask: ask, q: q}
		if w.rates && w.r.IntN(4) > 0 {
			x.known = w.ratings()
			x.known.Watched = w.watches && w.r.IntN(3) > 0
			q.Rate(x.known)
		}
		w.queue = append(w.queue, x)
	} else if len(w.o.lane(ask)) > 0 {
		w.t.Fatalf("%+v: %v, but there are endpoints for it", ask, err)
	}
}

// ratings draws the ratings of a prompt, sometimes for endpoints outside the pool.
func (w *world) ratings() *Ratings {
	r := &Ratings{Prompt: w.r.Int64N(20_000)}
	if w.r.IntN(2) == 0 {
		r.Floor = w.r.Int64N(r.Prompt + 1)
	}
	several := w.r.IntN(3)
	for _, e := range w.known {
		switch n := w.r.IntN(10); {
		case n < 2*several && len(r.Above) < MaxAbove:
			r.Above = append(r.Above, Cached{e.ID, r.Floor + w.r.Int64N(r.Prompt-r.Floor+1)})
		case n == 9 && len(r.Near) < MaxNear && several < 2:
			r.Near = append(r.Near, e.ID)
		}
	}
	w.r.Shuffle(len(r.Near), func(i, j int) { r.Near[i], r.Near[j] = r.Near[j], r.Near[i] })
	return r
}

// take draws a waiting request; half the time it stays in the queue and may be placed again.
func (w *world) take() (waiting, bool) {
	if len(w.queue) == 0 {
		return waiting{}, false
	}
	i := w.r.IntN(len(w.queue))
	x := w.queue[i]
	if w.r.IntN(2) == 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	return x, true
}

func (w *world) place() {
	x, ok := w.take()
	if !ok {
		return
	}
	bound := Bound(w.r.IntN(4))
	except, ids := w.except()
	had, could := w.b.HasRoom(x.q, bound, except), w.b.HasRoom(x.q, bound, nil)
	if lane := w.o.lane(x.ask); could != (w.o.room(lane, x.q.Lane(), bound) && len(w.o.choice(x, lane, bound, nil, 0)) > 0) {
		w.t.Fatalf("%+v in lane %q: room %t", x.ask, x.q.Lane(), could)
	}
	want, destinations := w.o.place(x, bound, ids)
	if had != (want != NoEndpoint) {
		w.t.Fatalf("%+v in lane %q: room %t, and is to go to %d", x.ask, x.q.Lane(), had, want)
	}
	r := w.b.Place(x.q, bound, except)
	if got := r.Endpoint(); got != want {
		w.t.Fatalf("%+v in lane %q is at %d, want %d; not at %v", x.ask, x.q.Lane(), got, want, ids)
	}
	if got := x.q.Destinations(nil); !slices.Equal(got, destinations) {
		w.t.Fatalf("%+v goes to %q, want %q", x.ask, got, destinations)
	}
	if want != NoEndpoint {
		w.held = append(w.held, r)
		w.costs(len(w.o.leases)-1, w.r.Int64N(40))
	}
}

// except draws endpoints that a request may not use: none, a few or most.
func (w *world) except() (set *EndpointSet, ids []EndpointID) {
	most := []int{0, 0, 20, 60, 95}[w.r.IntN(5)]
	if most == 0 {
		return nil, nil
	}
	set = &EndpointSet{}
	for _, i := range w.r.Perm(len(w.known)) {
		if w.r.IntN(100) < most {
			set.Add(w.known[i].ID)
			ids = append(ids, w.known[i].ID)
		}
	}
	return set, ids
}

func (w *world) placeAt() {
	x, ok := w.take()
	if !ok {
		return
	}
	lane := w.o.lane(x.ask)
	if len(lane) == 0 {
		return
	}
	e := lane[w.r.IntN(len(lane))]
	_, destinations := w.o.take(x, lane, e)
	w.held = append(w.held, w.b.PlaceAt(x.q, e.ID))
	if got := x.q.Destinations(nil); !slices.Equal(got, destinations) {
		w.t.Fatalf("%+v goes to %q, want %q", x.ask, got, destinations)
	}
}

func (w *world) release() {
	if len(w.o.leases) == 0 {
		return
	}
	i := w.r.IntN(len(w.o.leases))
	w.costs(i, 0)
	w.b.Release(&w.held[i])
	w.held, w.o.unread = slices.Delete(w.held, i, i+1), slices.Delete(w.o.unread, i, i+1)
	w.o.leases, w.o.costs = slices.Delete(w.o.leases, i, i+1), slices.Delete(w.o.costs, i, i+1)
}

// read lets the first token of a request come, perhaps again.
func (w *world) read() {
	if len(w.held) > 0 {
		i := w.r.IntN(len(w.held))
		w.b.PromptRead(&w.held[i])
		w.o.unread[i] = 0
	}
}

// check compares everything observable in the board and the oracle.
func (w *world) check() {
	t := w.t
	checkInvariants(t, w.b)
	if w.b.Total() != len(w.o.leases) {
		t.Fatalf("%d in flight, %d leases", w.b.Total(), len(w.o.leases))
	}
	for _, e := range w.known {
		if got, want := int64(w.b.Stock(e.ID)), w.o.stock(e.ID); got != want {
			t.Fatalf("endpoint %d has %d in flight, want %d", e.ID, got, want)
		}
	}
	if lower, upper := w.b.BelowTokens(BelowLower), w.b.BelowTokens(BelowUpper); lower != w.o.belowCost(w.o.least) || upper != w.o.belowCost(w.o.most) {
		t.Fatalf("below the lower bounds of the cost %t, the upper ones %t: want %t and %t", lower, upper, !lower, !upper)
	}
	if len(w.queue) == 0 {
		return
	}
	x := w.queue[w.r.IntN(len(w.queue))]
	lane := w.o.lane(x.ask)
	if w.b.HasReady(x.q, nil) != (len(lane) > 0) {
		t.Fatalf("HasReady(%+v) = %v", x.ask, w.b.HasReady(x.q, nil))
	}
	set, ids := w.except()
	inside := func(e Endpoint) bool { return slices.Contains(ids, e.ID) }
	if w.b.HasReady(x.q, set) != slices.ContainsFunc(lane, func(e Endpoint) bool { return !inside(e) }) {
		t.Fatalf("HasReady(%+v, %v) = %v", x.ask, ids, w.b.HasReady(x.q, set))
	}
	if w.b.Meets(x.q, set) != slices.ContainsFunc(lane, inside) {
		t.Fatalf("Meets(%+v, %v) = %v", x.ask, ids, w.b.Meets(x.q, set))
	}
	for _, c := range w.b.Explain(x.q).Candidates {
		if want := w.o.toRead(c.ID); c.Prompts != want {
			t.Fatalf("endpoint %d has to read %d tokens, want %d", c.ID, c.Prompts, want)
		}
		serves := slices.ContainsFunc(lane, func(e Endpoint) bool { return e.ID == c.ID })
		if w.b.CanServe(x.q, c.ID) != serves {
			t.Fatalf("CanServe(%+v, %d) = %v", x.ask, c.ID, !serves)
		}
		failed := slices.DeleteFunc(slices.Clone(c.Failed), func(f Failure) bool {
			return f.Filter == filterMaxInFlight || f.Filter == filterTokens || f.Filter == filterBound
		})
		if (len(failed) == 0) != serves {
			t.Fatalf("%+v: endpoint %d fails %+v", x.ask, c.ID, c.Failed)
		}
	}
	w.checkLanes(x)
}

// checkLanes checks that requests of one snapshot in lanes of the same name may use the same endpoints.
func (w *world) checkLanes(x waiting) {
	fresh, err := w.s.Prepare(w.b.Snapshot(), x.ask)
	if err != nil {
		return
	}
	for _, y := range w.queue {
		other, err := w.s.Prepare(w.b.Snapshot(), y.ask)
		if err != nil || other.Lane() != fresh.Lane() {
			continue
		}
		if !slices.Equal(fresh.reach.positions, other.reach.positions) {
			w.t.Fatalf("%+v and %+v are both in lane %q", x.ask, y.ask, fresh.Lane())
		}
	}
}
