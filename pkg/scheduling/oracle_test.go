package scheduling

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// oracle is the scheduler written to be read and not to be fast: it keeps every lease in a list, looks at every
// endpoint by its text, and compares loads as rational numbers. It breaks ties by rotation.
type oracle struct {
	pool   []Endpoint // by ID
	leases []EndpointID
	last   EndpointID
}

func (o *oracle) stock(id EndpointID) (n int64) {
	for _, lease := range o.leases {
		if lease == id {
			n++
		}
	}
	return n
}

// lane returns the ready endpoints that the request may use.
func (o *oracle) lane(ask Ask) (lane []Endpoint) {
	for _, e := range o.pool {
		serves := ask.Model == "" || len(e.Models) == 0 || slices.Contains(e.Models, ask.Model)
		if e.Ready && serves && (!ask.Subset.Set || slices.ContainsFunc(ask.Subset.Entries, func(entry string) bool { return names(entry, e.Address) })) {
			lane = append(lane, e)
		}
	}
	return lane
}

// names says whether a subset's entry names the address, the long way.
func names(entry, address string) bool {
	at := netip.MustParseAddrPort(address)
	if both, err := netip.ParseAddrPort(entry); err == nil {
		return both == at
	}
	host, err := netip.ParseAddr(entry)
	return err == nil && host == at.Addr()
}

func (o *oracle) load(e Endpoint) *big.Rat {
	return big.NewRat(o.stock(e.ID)+1, max(e.UpperBound, 1)) // the test has no endpoint without an upper bound
}

func (o *oracle) place(ask Ask, name string, bound Bound) (EndpointID, []string) {
	lane := o.lane(ask)
	var stock, band int64
	for _, e := range lane {
		stock += o.stock(e.ID)
		if bound == BelowLower {
			band += e.LowerBound
		} else {
			band += e.UpperBound
		}
	}
	confined := name != "" || len(lane) < len(o.lane(Ask{})) // see board_test.go, TestQueriesFollowTheBoard
	if confined && stock > 0 && big.NewRat(stock, 1).Cmp(big.NewRat(band, Millionths)) >= 0 {
		return NoEndpoint, nil
	}
	order := o.ranked(lane, o.last)
	if len(order) == 0 {
		return NoEndpoint, nil
	}
	return o.take(lane, order[0])
}

// ranked returns those below their limit, best first, equals in ring order after an endpoint.
func (o *oracle) ranked(lane []Endpoint, after EndpointID) []Endpoint {
	free := slices.DeleteFunc(slices.Clone(lane), func(e Endpoint) bool {
		return e.MaxInFlight > 0 && o.stock(e.ID) >= int64(e.MaxInFlight)
	})
	slices.SortFunc(free, func(a, b Endpoint) int {
		if c := o.load(a).Cmp(o.load(b)); c != 0 {
			return c
		}
		if wrapped := cmp.Compare(asInt(a.ID <= after), asInt(b.ID <= after)); wrapped != 0 {
			return wrapped
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return free
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (o *oracle) take(lane []Endpoint, e Endpoint) (EndpointID, []string) {
	destinations := []string{e.Address}
	for _, next := range o.ranked(lane, e.ID) {
		if next.ID != e.ID && len(destinations) < 3 {
			destinations = append(destinations, next.Address)
		}
	}
	o.leases, o.last = append(o.leases, e.ID), e.ID
	return e.ID, destinations
}

// waiting is a request that was prepared at some time and is placed at some later one.
type waiting struct {
	ask Ask
	q   *Query
}

// world drives a board and the oracle through the same random operations.
type world struct {
	t       *testing.T
	r       *rand.Rand
	s       *Scheduler
	b       *Board
	o       *oracle
	version uint64
	known   []Endpoint // all that were ever in the pool, by ID
	queue   []waiting
}

var (
	worldAddresses = []string{"10.0.0.1:80", "10.0.0.1:81", "10.0.0.2:80", "10.0.0.3:80", "[::1]:80", "[::1]:81", "[2001:db8::7]:80"}
	worldEntries   = []string{"10.0.0.1", "10.0.0.1:81", "10.0.0.2:80", "10.0.0.2:99", "10.0.0.9", "::1", "[::1]:81", "[2001:db8:0::7]:80", "10.0.0.3"}
	worldModels    = []string{"", "a", "b", "c"}
)

func TestAgainstOracle(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), s: mustNew(t), o: &oracle{last: NoEndpoint}}
			w.b = NewBoard(w.s, nil)
			for _, address := range worldAddresses {
				w.known = append(w.known, Endpoint{ID: EndpointID(len(w.known)), Address: address})
			}
			for range 600 {
				w.step()
				w.check()
			}
		})
	}
}

func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 6 || w.version == 0:
		w.changePool()
	case n < 26:
		w.arrive()
	case n < 66:
		w.place()
	case n < 71:
		w.placeAt()
	default:
		w.release()
	}
}

func (w *world) changePool() {
	var pool []Endpoint
	listing := w.r.IntN(3) > 0
	for _, e := range w.known {
		if w.r.IntN(4) == 0 {
			continue
		}
		e.Ready = w.r.IntN(4) > 0
		if listing && w.r.IntN(3) > 0 {
			e.Models = [][]string{{"a"}, {"b"}, {"a", "b"}}[w.r.IntN(3)]
		}
		e.LowerBound = []int64{0, 900_000, 1_800_000, 2_000_000}[w.r.IntN(4)]
		e.UpperBound = e.LowerBound + []int64{1, 400_000, 1_000_000}[w.r.IntN(3)]
		if w.r.IntN(3) == 0 {
			e.MaxInFlight = 1 + w.r.IntN(4)
		}
		pool = append(pool, e)
	}
	w.version++
	w.o.pool = pool
	w.b.SetSnapshot(NewSnapshot(w.version, pool))
}

func (w *world) arrive() {
	ask := Ask{Model: worldModels[w.r.IntN(len(worldModels))]}
	if w.r.IntN(2) == 0 {
		ask.Subset.Set = true
		for range 1 + w.r.IntN(3) {
			ask.Subset.Entries = append(ask.Subset.Entries, worldEntries[w.r.IntN(len(worldEntries))])
		}
	}
	q, err := w.s.Prepare(w.b.Snapshot(), ask)
	if err == nil {
		w.queue = append(w.queue, waiting{ask, q})
	} else if len(w.o.lane(ask)) > 0 {
		w.t.Fatalf("%+v: %v, but there are endpoints for it", ask, err)
	}
}

// take draws a waiting request, as often as not to leave it in the queue: it may be placed again.
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
	bound := Bound(w.r.IntN(2))
	want, destinations := w.o.place(x.ask, x.q.Lane(), bound)
	if got := w.b.Place(x.q, bound); got != want {
		w.t.Fatalf("%+v in lane %q is at %d, want %d", x.ask, x.q.Lane(), got, want)
	}
	if got := x.q.Destinations(nil); !slices.Equal(got, destinations) {
		w.t.Fatalf("%+v goes to %q, want %q", x.ask, got, destinations)
	}
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
	_, destinations := w.o.take(lane, e)
	w.b.PlaceAt(x.q, e.ID)
	if got := x.q.Destinations(nil); !slices.Equal(got, destinations) {
		w.t.Fatalf("%+v goes to %q, want %q", x.ask, got, destinations)
	}
}

func (w *world) release() {
	if len(w.o.leases) == 0 {
		return
	}
	i := w.r.IntN(len(w.o.leases))
	w.b.Release(w.o.leases[i])
	w.o.leases = slices.Delete(w.o.leases, i, i+1)
}

// check compares all that can be seen of the two.
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
	if len(w.queue) == 0 {
		return
	}
	x := w.queue[w.r.IntN(len(w.queue))]
	lane := w.o.lane(x.ask)
	if w.b.HasReady(x.q) != (len(lane) > 0) {
		t.Fatalf("HasReady(%+v) = %v", x.ask, w.b.HasReady(x.q))
	}
	for _, c := range w.b.Explain(x.q).Candidates {
		serves := slices.ContainsFunc(lane, func(e Endpoint) bool { return e.ID == c.ID })
		if w.b.CanServe(x.q, c.ID) != serves {
			t.Fatalf("CanServe(%+v, %d) = %v", x.ask, c.ID, !serves)
		}
		failed := slices.DeleteFunc(slices.Clone(c.Failed), func(f Failure) bool { return f.Filter == filterMaxInFlight })
		if (len(failed) == 0) != serves {
			t.Fatalf("%+v: endpoint %d fails %+v", x.ask, c.ID, c.Failed)
		}
	}
	w.checkLanes(x)
}

// checkLanes: requests that were prepared on one snapshot and whose lanes have one name use the same endpoints.
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
