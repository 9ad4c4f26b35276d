package fairqueue

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// byDeadline returns a queue of one flow with this order, in which the TTL is 30 s.
func byDeadline(t testing.TB, o Order) *FairRequestQueue {
	cfg := DefaultConfig()
	cfg.Order, cfg.CapacityMode, cfg.FlowCapacity = o, Shared, cfg.TotalCapacity
	return queue(t, cfg)
}

// named pushes a request with this name, at this time, with a deadline this much later; 0: none of its own.
func named(t testing.TB, q *FairRequestQueue, name string, at, within time.Duration, path *Path) *Request {
	t.Helper()
	r := &Request{Owner: name, Path: path}
	if within != 0 {
		r.Within = within
	}
	if _, err := q.Push(start.Add(at), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// namesOf pops everything and returns the names.
func namesOf(t testing.TB, q *FairRequestQueue) string {
	t.Helper()
	var names []string
	for r := popNext(q); r != nil; r = popNext(q) {
		names = append(names, r.Owner.(string))
		mustHold(t, q)
	}
	return strings.Join(names, " ")
}

// The earliest deadline goes first: the client's own, or else the end of the TTL. Equal deadlines go by arrival.
func TestEDF(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, test := range []struct {
		name, want string
		push       func(q *FairRequestQueue)
	}{
		{"deadlines", "c b a", func(q *FairRequestQueue) {
			named(t, q, "a", 0, 20*s, nil)
			named(t, q, "b", 1*ms, 10*s, nil)
			named(t, q, "c", 2*ms, 5*s, nil)
		}},
		{"the TTL of 30 s where there is none", "soon first second late", func(q *FairRequestQueue) {
			named(t, q, "first", 0, 0, nil)
			named(t, q, "late", 1*ms, 31*s, nil)
			named(t, q, "second", 2*ms, 0, nil)
			named(t, q, "soon", 3*ms, 29*s, nil)
		}},
		{"a client's own counts beyond the TTL", "sooner later", func(q *FairRequestQueue) {
			named(t, q, "later", 0, 60*s, nil)
			named(t, q, "sooner", 1*ms, 50*s, nil)
		}},
		{"none has one: as they came", "a b c", func(q *FairRequestQueue) {
			for i, name := range []string{"a", "b", "c"} {
				named(t, q, name, time.Duration(i)*ms, 0, nil)
			}
		}},
		{"one instant, and arrivals within a microsecond of each other", "a b c d", func(q *FairRequestQueue) {
			for i, name := range []string{"a", "b", "c", "d"} {
				at := time.Duration(i) * 300 * time.Nanosecond
				named(t, q, name, at, 10*s-at, nil)
			}
		}},
		{"further than can be counted, and past", "past near far1 far2", func(q *FairRequestQueue) {
			named(t, q, "far1", 0, 1<<63-1, nil)
			named(t, q, "far2", 0, 1<<62, nil)
			named(t, q, "near", 0, 3600*s, nil)
			named(t, q, "past", 0, -1<<62, nil)
		}},
		{"strict priority first, and priority in seconds", "strict b a", func(q *FairRequestQueue) {
			named(t, q, "a", 0, 10*s, nil)
			named(t, q, "b", 0, 14*s, &Path{Priority: 5})
			named(t, q, "strict", 0, 60*s, &Path{Strict: 1})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := byDeadline(t, EDF)
			test.push(q)
			if got := namesOf(t, q); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// A year beyond the range of a duration is the latest deadline, not the earliest.
func TestEDFOfDistantYears(t *testing.T) {
	q := byDeadline(t, EDF)
	for _, r := range []*Request{
		{Owner: "9999", Within: Until(start.Add(time.Hour), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))},
		{Owner: "TTL"},
		{Owner: "year 1", Within: Until(start.Add(time.Hour), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC))},
	} {
		if _, err := q.Push(start.Add(time.Hour), r); err != nil {
			t.Fatal(err)
		}
	}
	if got := namesOf(t, q); got != "year 1 TTL 9999" {
		t.Error(got)
	}
}

// A requeued request has its old place.
func TestEDFRequeueKeepsThePlace(t *testing.T) {
	q := byDeadline(t, EDF)
	for i, name := range []string{"a", "b", "c", "d"} {
		named(t, q, name, time.Duration(i), 10*time.Second-time.Duration(i), nil)
	}
	a, b := popNext(q), popNext(q)
	named(t, q, "soonest", 1, time.Second, nil)
	q.Requeue(b)
	q.Requeue(a)
	if got := namesOf(t, q); got != "soonest a b c d" {
		t.Error(got)
	}
}

// An overdue request is never popped, at any position. A full queue displaces the newest arrival of a flow, whatever
// its deadline; a starved tier's age is that of its oldest arrival.
func TestEDFExpiryAndDisplacement(t *testing.T) {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.Order = Shared, 3, 3, EDF
	cfg.Tiers = []TierConfig{{Name: "high", QueueSize: NoLimit}, {Name: "low", QueueSize: NoLimit, StarvationThreshold: 5 * time.Second}}
	q := queue(t, cfg)
	push := func(name string, tier int, at, within time.Duration) *Request {
		r := &Request{Owner: name, Tier: tier, Within: within}
		displaced, err := q.Push(start.Add(at), r)
		if err != nil {
			t.Fatal(err)
		}
		return displaced
	}
	push("oldest", 1, 0, 20*time.Second)
	push("hurried", 1, time.Second, 2*time.Second)
	push("newest", 1, 2*time.Second, 10*time.Second)
	if gone := push("higher", 0, 2*time.Second, time.Minute); gone == nil || gone.Owner != "newest" {
		t.Errorf("displaced %v, want the newest", gone)
	}
	if left, ok := q.UntilStarvation(start.Add(2 * time.Second)); !ok || left != 3*time.Second {
		t.Errorf("starved in %v %t, want 3 s: by its oldest", left, ok)
	}
	if gone := expire(q, start.Add(3*time.Second)); len(gone) != 1 || gone[0].Owner != "hurried" || q.TTLOver(start.Add(3*time.Second), gone[0]) {
		t.Errorf("expired %v", gone)
	}
	if got := namesOf(t, q); got != "higher oldest" {
		t.Error(got)
	}
}

// A reload sorts the waiters anew, of classes and of tiers without.
func TestReloadOfTheOrder(t *testing.T) {
	for _, classes := range [][]ClassConfig{nil, {{Name: "x", Quantum: 1}}} {
		q := byDeadline(t, FCFS)
		cfg := q.config
		reload := func(o Order) {
			if cfg.Order, cfg.Classes = o, slices.Clone(classes); len(classes) > 0 {
				cfg.Order, cfg.Classes[0].Order = FCFS, o
			}
			reconfigure(t, q, cfg)
		}
		reload(FCFS)
		for i, name := range []string{"a", "b", "c"} {
			r := named(t, q, name, 0, []time.Duration{20, 10, 15}[i]*time.Second, nil)
			q.Remove(r)
			r.Cost = Cost(i) // b is before a in no other order
			mustPush(t, q, r)
		}
		for _, step := range []struct {
			order Order
			want  string
		}{{EDF, "b"}, {WSPT, "a"}, {FCFS, "a"}, {EDF, "b"}} {
			reload(step.order)
			r := q.Peek(start, Allowed{Tiers: AllTiers}).Request
			if err := checkInvariants(q); err != nil || r.Owner != step.want {
				t.Errorf("order %d: %v goes, want %s; %v", step.order, r.Owner, step.want, err)
			}
		}
	}
}

// Random arrivals, cancellations, dispatches and requeues, compared with a list that is sorted at each dispatch.
func TestEDFAgainstASortedList(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 112))
		cfg := DefaultConfig()
		cfg.Order, cfg.FlowCapacity, cfg.Discipline = EDF, cfg.TotalCapacity, OneFlow
		q := queue(t, cfg)
		type entry struct {
			r   *Request
			due time.Time
			n   int
		}
		var list, gone []entry
		for n := range 300 {
			now := start.Add(time.Duration(n) * time.Millisecond)
			switch random.IntN(6) {
			case 0, 1, 2:
				e := entry{r: &Request{}, due: now.Add(cfg.QueueTTL), n: n}
				if random.IntN(2) == 0 {
					e.due = start.Add(time.Duration(random.IntN(50)) * time.Second)
					e.r.Within = Until(now, e.due)
				}
				if _, err := q.Push(now, e.r); err != nil {
					t.Fatal(err)
				}
				list = append(list, e)
			case 3:
				if len(list) > 0 {
					i := random.IntN(len(list))
					q.Remove(list[i].r)
					list = slices.Delete(list, i, i+1)
				}
			case 4:
				if len(gone) > 0 {
					i := random.IntN(len(gone))
					q.Requeue(gone[i].r)
					list = append(list, gone[i])
					gone = slices.Delete(gone, i, i+1)
				}
			case 5:
				slices.SortFunc(list, func(a, b entry) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.n, b.n)) })
				if r := popNext(q); len(list) > 0 {
					if r != list[0].r {
						t.Fatalf("seed %d: not the one that is due at %v", seed, list[0].due)
					}
					gone, list = append(gone, list[0]), list[1:]
				} else if r != nil {
					t.Fatal("one that does not wait")
				}
			}
			mustHold(t, q)
		}
	}
}
