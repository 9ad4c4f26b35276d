package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subset is a placement: the endpoints that a request may use, "" for all, "1,2" for some.
type subset string

func (s subset) has(e Endpoint) bool {
	return s == "" || slices.Contains(strings.Split(string(s), ","), fmt.Sprint(e))
}

var pool subset

// anywhere is a Placer without changes, bounds or tokens.
type anywhere struct{}

func (anywhere) Lane(Placement) string                          { return "" }
func (anywhere) Reach(Placement, []Endpoint) ([]Endpoint, bool) { return nil, true }

func (anywhere) TakeChanges(some []Endpoint) ([]Endpoint, bool) { return some, true }
func (anywhere) TakeRegrouping() *dispatch.Regrouping           { return nil }
func (anywhere) SetBounds(Endpoint, int64, int64) bool          { return true }
func (anywhere) SetTokenBounds(Endpoint, int64, int64) bool     { return true }
func (anywhere) SetForeign(Endpoint, int, int64) bool           { return true }
func (anywhere) AddTokens(Endpoint, int64)                      {}
func (anywhere) BelowTokens(dispatch.Bound) bool                { return true }
func (anywhere) Regret(dispatch.Placement, dispatch.Bound, *dispatch.EndpointSet) (int64, bool) {
	return 0, true
}
func (anywhere) Known(Placement) int                                              { return 1 }
func (anywhere) Busy(Placement, int) bool                                         { return false }
func (anywhere) SetBusyRules([]scheduling.BusyRule)                               {}
func (anywhere) TakeTurned(some []Endpoint) []Endpoint                            { return some }
func (anywhere) PromptRead(*dispatch.Reservation)                                 {}
func (anywhere) TakesTokens(Endpoint, int64) bool                                 { return true }
func (anywhere) Times() bool                                                      { return false }
func (anywhere) Completed(Endpoint, time.Duration, int64)                         {}
func (anywhere) SetSignals(Endpoint, dispatch.Signals) bool                       { return true }
func (anywhere) Held(Endpoint) int                                                { return 0 }
func (anywhere) Traits(Placement, []scheduling.Trait) []scheduling.Trait          { return nil }
func (anywhere) TraitsOf(Endpoint, []scheduling.Trait) ([]scheduling.Trait, bool) { return nil, true }

// backends is a Placer of some endpoints, each ready or not. It picks the least loaded.
type backends struct {
	anywhere
	ready    []bool
	reserved []int
	upper    int    // lane bound per endpoint, for placements of a subset; 0: none
	panics   int    // so many calls of Place panic
	releases int    // so many calls of Release panic once it is done
	poison   string // a lane: with sick, every question about it panics
	sick     bool
	quiet    string // a method that does not
}

// ask panics when the question is about the poison.
func (b *backends) ask(method string, p Placement) {
	if b.sick && string(p.(subset)) == b.poison && method != b.quiet {
		panic("placer: poison")
	}
}

func ready(n int) *backends {
	b := &backends{ready: make([]bool, n), reserved: make([]int, n)}
	for i := range b.ready {
		b.ready[i] = true
	}
	return b
}

func (b *backends) Place(p Placement, bound dispatch.Bound, except *dispatch.EndpointSet) dispatch.Reservation {
	b.ask("Place", p)
	if b.panics > 0 {
		b.panics--
		panic("placer: out of order")
	}
	best := b.pick(p, bound, except)
	if best == NoEndpoint {
		return dispatch.Reservation{}
	}
	b.reserved[best]++
	return scheduling.Reserved(best)
}

func (b *backends) pick(p Placement, bound dispatch.Bound, except *dispatch.EndpointSet) Endpoint {
	best, held, room := NoEndpoint, 0, 0
	for e := range b.ready {
		if b.ready[e] && p.(subset).has(Endpoint(e)) {
			held += b.reserved[e]
			room += b.upper
			if except.Has(Endpoint(e)) {
				continue
			}
			if best == NoEndpoint || b.reserved[e] < b.reserved[best] {
				best = Endpoint(e)
			}
		}
	}
	if p.(subset) != "" && bound < dispatch.Unbounded && held > 0 && b.upper > 0 && held >= room {
		return NoEndpoint
	}
	return best
}

func (b *backends) PlaceAt(p Placement, e Endpoint) dispatch.Reservation {
	b.ask("PlaceAt", p)
	b.reserved[e]++
	return scheduling.Reserved(e)
}

func (b *backends) Release(_ any, r *dispatch.Reservation) {
	e := r.Endpoint()
	b.reserved[e]--
	if b.reserved[e] < 0 {
		panic("released more than was reserved")
	}
	if b.releases > 0 {
		b.releases--
		panic("placer: out of order")
	}
}

func (b *backends) HasReady(p Placement, except *dispatch.EndpointSet) bool {
	b.ask("HasReady", p)
	for e := range b.ready {
		if !except.Has(Endpoint(e)) && b.ready[e] && p.(subset).has(Endpoint(e)) {
			return true
		}
	}
	return false
}

func (b *backends) Meets(p Placement, set *dispatch.EndpointSet) bool {
	b.ask("Meets", p)
	for e := range b.ready {
		if set.Has(Endpoint(e)) && b.ready[e] && p.(subset).has(Endpoint(e)) {
			return true
		}
	}
	return false
}

func (b *backends) CanServe(p Placement, e Endpoint) bool {
	b.ask("CanServe", p)
	return int(e) < len(b.ready) && b.ready[e] && p.(subset).has(e)
}

func (b *backends) HasRoom(p Placement, bound dispatch.Bound, except *dispatch.EndpointSet) bool {
	b.ask("HasRoom", p)
	return b.pick(p, bound, except) != NoEndpoint
}

func (b *backends) CanTakeOver(p Placement, e Endpoint) bool {
	b.ask("CanTakeOver", p)
	return b.CanServe(p, e)
}

// Lane is the subset.
func (b *backends) Lane(p Placement) string { return string(p.(subset)) }

func (b *backends) total() int {
	n := 0
	for _, r := range b.reserved {
		n += r
	}
	return n
}

// bench is a controller in a bubble of fake time.
type bench struct {
	*RequestQueueController
	t        *testing.T
	backends *backends
}

// inBubble runs a test with a controller whose poppers run, and checks at the end that its accounts are zero.
func inBubble(t *testing.T, b *backends, change func(*Config), test func(*bench)) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		if change != nil {
			change(&cfg)
		}
		c, err := New(cfg, b, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { _ = c.Run(ctx); close(done) }()
		x := &bench{c, t, b}
		x.update()
		test(x)
		c.Drain()
		synctest.Wait()
		x.checkInvariants()
		stop()
		<-done
	})
}

// update gives the controller the ready endpoints.
func (b *bench) update() {
	var list []stock.Backend
	for e, r := range b.backends.ready {
		if r {
			list = append(list, stock.Backend{ID: stock.BackendID(e)})
		}
	}
	b.SetBackends(list, nil, nil)
	synctest.Wait()
}

// Drain drains the controller, and waits until every stream has been told.
func (b *bench) Drain() {
	b.RequestQueueController.Drain()
	synctest.Wait()
}

// numbered are n backends.
func numbered(n int) (list []stock.Backend) {
	for id := range stock.BackendID(n) {
		list = append(list, stock.Backend{ID: id})
	}
	return list
}

// checkInvariants compares the controller's accounts with each other and with the placer's.
func (b *bench) checkInvariants() {
	b.t.Helper()
	s := b.State()
	if b.backends.total() != s.Stock || s.LiveFlows > s.Queued+s.Stock || s.LiveFlows == 0 != (s.Queued+s.Stock == 0) {
		b.t.Fatalf("accounts differ: %d reserved, %+v", b.backends.total(), s)
	}
	live := 0
	for range b.live.all {
		live++
	}
	if live != s.Queued+s.Stock {
		b.t.Fatalf("%d requests live, of %+v", live, s)
	}
	if s.TimerStands != (s.Queued > 0) {
		b.t.Fatalf("the timer stands: %t, with %d waiting", s.TimerStands, s.Queued)
	}
}

// one is the one-tier request of a flow.
func one(flow string) *Request { return &Request{Flow: flow, Placement: pool} }

// holds gets n leases at once, and fails if one would wait.
func (b *bench) holds(n int) []*Lease {
	b.t.Helper()
	var leases []*Lease
	for range n {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Nanosecond)
		l, err := b.TryEnqueue(ctx, one("held"))
		cancel()
		if err != nil {
			b.t.Fatalf("lease %d of %d: %v", len(leases)+1, n, err)
		}
		leases = append(leases, l)
	}
	return leases
}

// arrival is a TryEnqueue in its own goroutine.
type arrival struct {
	ended chan struct{} // closed when it has ended; the rest is written before
	lease *Lease
	err   error
	at    time.Time
}

func (b *bench) arrives(ctx context.Context, r *Request) *arrival {
	a := &arrival{ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		a.lease, a.err = b.TryEnqueue(ctx, r)
		a.at = time.Now()
	}()
	synctest.Wait()
	return a
}

func (a *arrival) outcome() string {
	select {
	case <-a.ended:
		return OutcomeOf(a.err).String()
	default:
		return "waits"
	}
}

func (b *bench) want(a *arrival, outcome string) {
	b.t.Helper()
	synctest.Wait()
	if got := a.outcome(); got != outcome {
		b.t.Fatalf("got %s, want %s", got, outcome)
	}
}

func complete(l *Lease) { l.OnRequestComplete(Completion{Status: 200}); synctest.Wait() }

func TestBypassEnqueueAndReleaseAtTheSeedsBounds(t *testing.T) {
	inBubble(t, ready(2), nil, func(b *bench) {
		leases := b.holds(5) // stock 4 is below 4.4
		waiter := b.arrives(b.t.Context(), one("a"))
		b.want(waiter, "waits")
		complete(leases[0]) // stock 4 is not below 3.6
		b.want(waiter, "waits")
		complete(leases[1])
		b.want(waiter, "dispatched")
		if wait, queued := waiter.lease.Queued(); !queued || wait != 0 {
			b.t.Errorf("queued %v for %v", queued, wait)
		}
		for _, l := range leases[2:] {
			complete(l)
		}
		complete(waiter.lease)
		complete(waiter.lease) // only the first call counts
		if s := b.State(); s.Stock != 0 || s.Queued != 0 || s.LiveFlows != 0 || s.TimerStands {
			b.t.Errorf("%+v", s)
		}
	})
}

func TestTTLIsExact(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		leases := b.holds(3)
		start := time.Now()
		time.Sleep(300 * time.Millisecond)
		waiter := b.arrives(b.t.Context(), one("a"))
		time.Sleep(30*time.Second - time.Nanosecond)
		b.want(waiter, "waits")
		time.Sleep(time.Nanosecond)
		b.want(waiter, "ttl-expired")
		if wait := waiter.at.Sub(start); wait != 30*time.Second+300*time.Millisecond {
			b.t.Errorf("expired after %v", wait)
		}
		for _, l := range leases {
			complete(l)
		}
	})
}

// The client's deadline is 504, its disconnect 499, and at the same instant as the TTL it is the TTL.
func TestDeadlineAndCancellation(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		leases := b.holds(3)
		header := one("a")
		header.Deadline = time.Now().Add(time.Second)
		byHeader := b.arrives(b.t.Context(), header)
		stream, cancelStream := context.WithTimeout(b.t.Context(), 2*time.Second)
		defer cancelStream()
		byStream := b.arrives(stream, one("a"))
		gone, leave := context.WithCancel(b.t.Context())
		client := b.arrives(gone, one("a"))
		tie := one("a")
		tie.Deadline = time.Now().Add(30 * time.Second)
		both := b.arrives(b.t.Context(), tie)
		if s := b.State(); s.Queued != 4 {
			b.t.Fatalf("%+v", s)
		}
		leave()
		b.want(client, "client-cancelled")
		if s := b.State(); s.Queued != 3 {
			b.t.Errorf("the place of a client that is gone is not free at once: %+v", s)
		}
		time.Sleep(time.Second)
		b.want(byHeader, "deadline-exceeded")
		time.Sleep(time.Second)
		b.want(byStream, "deadline-exceeded")
		time.Sleep(28 * time.Second)
		b.want(both, "ttl-expired")
		for _, l := range leases {
			complete(l)
		}
	})
}

func TestAnArrivalThatIsOverAlreadyIsNotAdmitted(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		ctx, cancel := context.WithCancel(b.t.Context())
		cancel()
		_, err := b.TryEnqueue(ctx, one("a"))
		if OutcomeOf(err) != OutcomeClientCancelled || b.State().Stock != 0 {
			b.t.Errorf("%v %+v", err, b.State())
		}
	})
}

func TestCapacityErrorsCarryASentinelAndAReason(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 4, 2 }, func(b *bench) {
		leases := b.holds(3)
		for _, flow := range []string{"a", "a", "b"} {
			b.want(b.arrives(b.t.Context(), one(flow)), "waits")
		}
		full := b.arrives(b.t.Context(), one("a"))
		b.want(full, "flow-full")
		third := b.arrives(b.t.Context(), one("c"))
		b.want(third, "queue-full")
		var r *Rejection
		if !errors.Is(full.err, fairqueue.ErrInsufficientFlowCapacity) || !errors.As(third.err, &r) ||
			r.RetryAfter < time.Second || !errors.Is(r, fairqueue.ErrTooManyFlows) {
			b.t.Errorf("%v, %+v", full.err, r)
		}
		b.want(b.arrives(b.t.Context(), one("b")), "waits") // a tracked flow always has its own capacity
		b.Drain()
		for _, l := range leases {
			complete(l)
		}
	})
}

// The stock of other replicas counts at once: a backend filled by them takes no request until they report it free.
func TestForeignStockCounts(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		b.SetForeign([]stock.Foreign{{ID: 0, Held: stock.Amount{Requests: 3}}})
		waiter := b.arrives(b.t.Context(), one("a"))
		b.want(waiter, "waits")
		b.SetForeign([]stock.Foreign{{ID: 0}})
		b.want(waiter, "dispatched")
		complete(waiter.lease)
	})
}
