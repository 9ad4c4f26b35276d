package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// busyRun is a pool of busy endpoints to which anything happens, and what is known of it by counting.
type busyRun struct {
	*prompts
	random *rand.Rand
	all    []*busyRequest
	moves  bool                   // the event moves requests
	own    *dispatch.Waiter       // that has arrived in the event
	reads  map[*busyRequest]int64 // what those that have not been read count, at their endpoints
}

type busyRequest struct {
	w      *dispatch.Waiter
	class  int
	at     []int // the endpoints that it may use; none: any
	prompt int64
	stage  dispatch.Stage
}

// TestRandomBusyMachines checks after each of many random events that no request was granted while its pool was too busy for its
// class, that none waits that could go, that a class earned nothing while all of it was blocked, that limits held, and that
// nothing is left at the end.
func TestRandomBusyMachines(t *testing.T) {
	runs := uint64(60)
	if testing.Short() {
		runs = 15
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runBusy(t, seed) })
	}
}

func runBusy(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 9))
	x := &busyRun{prompts: newPrompts(t, 3, 3, make([]scheduling.BusyRule, 3)...), random: random, reads: map[*busyRequest]int64{}}
	x.configure()
	for range 250 {
		x.now = x.now.Add(time.Duration(random.IntN(500)) * time.Millisecond)
		x.step()
	}
	for i := range x.pool {
		x.pool[i].Ready = true
	}
	x.event(x.setPool)
	for len(x.all) > 0 {
		if i := slices.IndexFunc(x.all, func(r *busyRequest) bool { return r.w.Lease() != nil }); i >= 0 {
			r := x.all[i]
			delete(x.reads, r)
			x.event(func() { x.ends(r.w) })
			continue
		}
		t.Fatalf("%d wait and nothing is in flight", len(x.all))
	}
	if s := x.m.State(); s.Stock != 0 || s.Queued != 0 || x.board.Total() != 0 {
		t.Errorf("at the end %d are in flight and %d wait", s.Stock, s.Queued)
	}
	for e := range x.pool {
		if n := x.board.Prompts(scheduling.EndpointID(e)); n != 0 {
			t.Errorf("at the end %d tokens are to be read at %d", n, e)
		}
	}
}

// configure gives the classes other rules, limits and rings.
func (x *busyRun) configure() {
	for i := range x.cfg.Classes {
		b := &x.cfg.Classes[i].Busy
		*b = scheduling.BusyRule{}
		if x.random.IntN(4) > 0 {
			b.PrefillTokens = new(x.random.Int64N(100))
		}
		if x.random.IntN(3) == 0 {
			b.PrefillFraction = new(x.random.Int64N(1_000_000))
		}
		if b.PrefillTokens != nil && x.random.IntN(2) == 0 {
			b.WorkerRatio = 1 + x.random.Int64N(1_000_000)
		}
		c := &x.cfg.Queue.Classes[i]
		if c.Limits = (fairqueue.ClassLimits{}); x.random.IntN(3) == 0 {
			c.Limits.Requests = new(x.random.Int64N(4))
			c.Limits.RawTokens = new(x.random.Int64N(200))
		}
		if x.m.Arrived() == 0 { // a class of another ring would be another class
			c.Ring = []string{"", "r"}[x.random.IntN(2)]
		}
	}
	x.event(func() {
		if err := x.m.Configure(x.now, x.cfg); err != nil {
			x.Fatal(err)
		}
	})
}

func (x *busyRun) step() {
	var r *busyRequest
	if n := len(x.all); n > 0 {
		r = x.all[x.random.IntN(n)]
	}
	switch n := x.random.IntN(24); {
	case r == nil || n < 9:
		x.arrive()
	case n < 13 && r.w.Lease() != nil:
		delete(x.reads, r)
		x.event(func() { x.first(r.w) })
	case n < 19 && r.w.Lease() != nil:
		delete(x.reads, r)
		x.event(func() { x.ends(r.w) })
	case n == 19:
		x.event(func() { x.m.Cancel(x.now, r.w, dispatch.OutcomeClientCancelled) })
	case n == 20:
		e := &x.pool[x.random.IntN(len(x.pool))]
		if x.random.IntN(3) == 0 {
			e.MaxBatchedTokens = x.random.Int64N(200)
		} else {
			e.Ready = !e.Ready
		}
		x.event(x.setPool)
	case n == 21:
		x.configure()
	case n == 22 && r.w.Lease() != nil:
		x.move(r, x.random.IntN(len(x.pool)))
	default:
		x.event(func() { x.m.Advance(x.now) })
	}
}

// move lets another endpoint serve a request.
func (x *busyRun) move(r *busyRequest, to int) {
	x.m.Told(r.w)
	before := r.w.Granted().Endpoint()
	x.moves = true
	x.event(func() {
		x.m.ServedElsewhere(x.now, r.w.Granted(), dispatch.Endpoint(to), 200)
		if moved := r.w.Granted().Endpoint(); moved != before && (int(moved) != to || !x.may(r, to)) {
			x.Fatalf("moved from %d to %d", before, moved)
		}
	})
}

func (x *busyRun) arrive() {
	r := &busyRequest{class: x.random.IntN(len(x.cfg.Queue.Classes)), prompt: 1 + x.random.Int64N(80)}
	for e := range x.pool {
		if x.random.IntN(3) == 0 {
			r.at = append(r.at, e)
		}
	}
	class := &x.cfg.Queue.Classes[r.class]
	limited := false
	if l := &class.Limits; l.Requests != nil {
		requests, raw := int64(0), int64(0)
		for _, o := range x.all {
			if o.w.Stage() == dispatch.StageWaiting && o.class == r.class {
				requests++
				raw += o.prompt
			}
		}
		limited = requests >= 3**l.Requests || raw >= 3**l.RawTokens
	}
	x.event(func() {
		r.w = x.offersIn(class.Ring, class.Name, r.prompt, r.at...)
		if err := r.w.Failure(); err != nil && !limited {
			x.Fatalf("limited: %v", err)
		} else if err == nil && limited && r.w.Stage() == dispatch.StageWaiting {
			x.Fatalf("it waits beyond the limits %+v", class.Limits)
		}
		x.all, x.own = append(x.all, r), r.w
	})
}

func (x *busyRun) may(r *busyRequest, e int) bool {
	return x.pool[e].Ready && (len(r.at) == 0 || slices.Contains(r.at, e))
}

// busy reports whether the endpoints that r may use are too busy, by what is at them.
func (x *busyRun) busy(r *busyRequest) bool {
	rule := &x.cfg.Classes[r.class].Busy
	n, of := 0, 0
	for e := range x.pool {
		if !x.may(r, e) {
			continue
		}
		of++
		sum := float64(x.readAt(e))
		if rule.PrefillTokens != nil && sum > float64(*rule.PrefillTokens) ||
			rule.PrefillFraction != nil && x.pool[e].MaxBatchedTokens > 0 && sum*1e6 > float64(*rule.PrefillFraction*x.pool[e].MaxBatchedTokens) {
			n++
		}
	}
	if rule.PrefillTokens == nil && rule.PrefillFraction == nil {
		return false
	}
	ratio := rule.WorkerRatio
	if ratio == 0 {
		ratio = 1_000_000
	}
	return of > 0 && int64(n)*1_000_000 >= ratio*int64(of)
}

func (x *busyRun) readAt(e int) (sum int64) {
	for r, n := range x.reads {
		if int(r.w.Granted().Endpoint()) == e {
			sum += n
		}
	}
	return sum
}

// counts reports whether prompts count now.
func (x *busyRun) counts() bool {
	return slices.ContainsFunc(x.cfg.Classes, func(c dispatch.ClassConfig) bool { return c.Busy.PrefillTokens != nil || c.Busy.PrefillFraction != nil })
}

// event lets something happen, and checks what has come of it.
func (x *busyRun) event(happens func()) {
	x.Helper()
	blocked := map[string]int64{} // the deficits of the classes of which all that waits was and is blocked
	for i, c := range x.m.Classes() {
		blocked[fmt.Sprint(i, c.Ring, c.Class)] = c.Deficit
	}
	waited := map[int]bool{} // classes, and whether all that waited was blocked
	for _, r := range x.all {
		if r.w.Stage() == dispatch.StageWaiting {
			all, some := waited[r.class]
			waited[r.class] = x.busy(r) && (all || !some)
		}
	}
	happens()
	granted := []*dispatch.Waiter{}
	if n := len(x.all); n > 0 && x.all[n-1].stage == dispatch.StageNew && x.all[n-1].w.Bypassed() && x.all[n-1].w.Lease() != nil {
		granted = append(granted, x.all[n-1].w)
	}
	granted = append(granted, x.m.Verdicts()...)
	for _, w := range granted {
		i := slices.IndexFunc(x.all, func(r *busyRequest) bool { return r.w == w })
		r := x.all[i]
		if w.Lease() == nil {
			continue
		}
		if x.busy(r) {
			x.Fatalf("request %d of class %d was granted an endpoint that is too busy for it", w.Number(), r.class)
		}
		if x.counts() {
			x.reads[r] = r.prompt
		}
		x.m.Told(w)
	}
	x.all = slices.DeleteFunc(x.all, func(r *busyRequest) bool {
		r.stage = r.w.Stage()
		if r.stage == dispatch.StageEnded {
			delete(x.reads, r)
		}
		return r.stage == dispatch.StageEnded
	})
	for e := range x.pool {
		if got, want := x.board.Prompts(scheduling.EndpointID(e)), x.readAt(e); got != want {
			x.Fatalf("%d tokens are to be read at %d, want %d", got, e, want)
		}
	}
	x.nobodyCouldGo()
	if x.moves {
		waited = nil // what was blocked before may have been so no longer for a while
	}
	if n := len(x.all); n > 0 && x.all[n-1].w == x.own {
		delete(waited, x.all[n-1].class) // it may have had the class's turn
	}
	x.moves, x.own = false, nil
	x.earned(blocked, waited)
}

// nobodyCouldGo checks that no request waits for which an endpoint has room and is not too busy.
func (x *busyRun) nobodyCouldGo() {
	x.Helper()
	for _, r := range x.all {
		if r.w.Stage() != dispatch.StageWaiting || x.busy(r) {
			continue
		}
		for e := range x.pool {
			if x.may(r, e) && x.board.Held(scheduling.EndpointID(e)) < 3 {
				x.Fatalf("request %d of class %d waits and could go to %d", r.w.Number(), r.class, e)
			}
		}
	}
}

// earned checks that no class has earned of which everything was blocked before and after.
func (x *busyRun) earned(before map[string]int64, waited map[int]bool) {
	x.Helper()
	for i, c := range x.m.Classes() {
		blocked := waited[i]
		for _, r := range x.all {
			if r.class == i && r.w.Stage() == dispatch.StageWaiting {
				blocked = blocked && x.busy(r)
			}
		}
		deficit, same := before[fmt.Sprint(i, c.Ring, c.Class)]
		if same && blocked && c.Deficit > deficit {
			x.Fatalf("class %d is blocked, and has earned %d", i, c.Deficit-deficit)
		}
	}
}
