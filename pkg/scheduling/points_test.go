package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// pointing returns a scheduler with policy mindrouter, first among equals.
func pointing(t testing.TB, change ...func(*Config)) *Scheduler {
	return mustNew(t, append([]func(*Config){func(c *Config) { c.Policy, c.TieBreak = PolicyMindRouter, TieFirst }}, change...)...)
}

// pointBoard returns a board with n idle endpoints of model "a" and bounds of 10 requests.
func pointBoard(s *Scheduler, n int, change func(i int, e *Endpoint)) *Board {
	pool := make([]Endpoint, n)
	for i, address := range addresses(n) {
		pool[i] = ready(EndpointID(i), address, "a")
		if change != nil {
			change(i, &pool[i])
		}
	}
	b := NewBoard(s, nil)
	b.SetSnapshot(NewSnapshot(1, pool))
	for i := range n {
		b.SetBounds(EndpointID(i), 10*Millionths, 10*Millionths)
	}
	return b
}

func utilised(percent int32) Signals {
	return Signals{Known: true, Utilised: percent * 10_000, StatesUtilised: true}
}

// The terms of MindRouter's score table, to the digits of its document.
func TestPointsOfMindRouter(t *testing.T) {
	p := DefaultConfig().Points
	const ms = 1000
	points := func(n float64) int64 { return int64(n * Millionths) }
	near := func(what string, got int64, want float64, digits int64) {
		t.Helper()
		unit := int64(Millionths)
		for range digits {
			unit /= 10
		}
		if d := got - points(want); d > unit/2 || -d > unit/2 {
			t.Errorf("%s: %d millionths, want %g", what, got, want)
		}
	}
	near("loaded", p.score(Load{}, true).Loaded, 100, 6)
	near("not loaded", p.score(Load{}, false).Loaded, 0, 6)
	near("utilisation unknown", p.score(Load{}, false).Utilisation, 25, 6)
	for u, want := range map[int32]float64{0: 50, 10: 45, 50: 25, 90: 5, 100: 0} {
		near(fmt.Sprint("utilisation ", u), p.score(Load{Signals: utilised(u)}, false).Utilisation, want, 6)
	}
	for d, want := range map[int]float64{0: 30, 1: 20, 2: 15, 5: 30 / 3.5, 18: 3} {
		near(fmt.Sprint("queue ", d), p.score(Load{Held: d}, false).Queue, want, 5)
	}
	near("latency unknown", p.score(Load{}, false).Latency, 20, 6)
	near("throughput unknown", p.score(Load{}, false).Throughput, 20, 6)
	for at, factor := range map[int64]float64{100: .98, 1000: .83, 5000: .50, 10_000: .33, 30_000: .14} {
		s := p.score(Load{Latency: at * ms, Pace: at * ms}, false)
		near(fmt.Sprint("latency ", at), s.Latency/40, factor, 2)
		near(fmt.Sprint("throughput ", at), s.Throughput/20, factor, 2)
	}
	near("priority", p.score(Load{Priority: 3}, false).Priority, 30, 6)
	near("below", p.score(Load{Priority: -3}, false).Priority, -30, 6)
	total := p.score(Load{Held: 1, Priority: 2, Latency: 5000 * ms, Pace: 5000 * ms, Signals: utilised(20)}, true)
	near("the total", total.Total(), 100+40+20+10+20+20, 6)
}

// The first sample is the mean, and each further one counts by alpha.
func TestMeansOfMindRouter(t *testing.T) {
	for _, test := range []struct {
		alpha              int64
		first, then, after time.Duration
	}{
		{300_000, 500 * time.Millisecond, time.Second, 650 * time.Millisecond},
		{500_000, 100 * time.Millisecond, 200 * time.Millisecond, 150 * time.Millisecond},
		{Millionths, 100 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond},
	} {
		b := pointBoard(pointing(t, func(c *Config) { c.Points.Alpha = test.alpha }), 1, nil)
		b.Completed(0, test.first, 500)
		if l := b.spots[0].load(); l.Latency != test.first.Microseconds() || l.Pace != 2*test.first.Microseconds() {
			t.Errorf("after the first: %d and %d µs", l.Latency, l.Pace)
		}
		b.Completed(0, test.then, 500)
		if l := b.spots[0].load(); l.Latency != test.after.Microseconds() || l.Pace != 2*test.after.Microseconds() {
			t.Errorf("alpha %d: %d and %d µs, want %d", test.alpha, l.Latency, l.Pace, test.after.Microseconds())
		}
		b.Completed(0, test.then, 0) // its cost is not known
		if l := b.spots[0].load(); l.Pace != 2*test.after.Microseconds() {
			t.Errorf("an unknown cost counts: %d µs", l.Pace)
		}
		before := b.spots[0].means
		b.Completed(0, -time.Second, 1)
		b.Completed(7, time.Second, 1) // nobody
		if b.spots[0].means != before {
			t.Errorf("they count: %+v", b.spots[0].means)
		}
		b.Completed(0, 1<<62, 1)
		if l := b.spots[0].load(); l.Latency > longestAnswer || l.Latency <= 0 || l.Pace <= 0 {
			t.Errorf("after the longest answer: %d and %d µs", l.Latency, l.Pace)
		}
	}
	b := pointBoard(pointing(t), 1, nil)
	if b.Completed(0, 0, 1000); b.spots[0].means.latency != 1 || b.spots[0].means.pace != 1 {
		t.Errorf("an answer at once is unknown: %+v", b.spots[0].means)
	}
	b = pointBoard(mustNew(t), 1, nil)
	if b.Completed(0, time.Second, 1); b.Times() || b.spots[0].means != (means{}) {
		t.Error("another policy counts times")
	}
}

// MindRouter's examples of a choice.
func TestChoicesOfMindRouter(t *testing.T) {
	ask := Ask{Model: "a"}
	for _, test := range []struct {
		name  string
		n     int
		state func(b *Board)
		want  EndpointID
	}{
		{"the first of equals", 3, func(*Board) {}, 0},
		{"10 of 10 concurrent", 2, func(b *Board) { hold(t, b, 0, 10); b.SetSignals(1, utilised(100)) }, 1},
		{"utilisation 10 before 90", 2, func(b *Board) { b.SetSignals(0, utilised(90)); b.SetSignals(1, utilised(10)) }, 1},
		{"loaded before not loaded", 2, func(b *Board) { b.SetSignals(0, Signals{Known: true, Unloaded: &Unloaded{Models: []string{"a"}}}) }, 1},
		{"another model that is not loaded", 2, func(b *Board) { b.SetSignals(0, Signals{Known: true, Unloaded: &Unloaded{Models: []string{"b"}}}) }, 0},
		{"utilisation 80, 20, 50, depth 5, 0, 2, and only the second loaded", 3, func(b *Board) {
			none := &Unloaded{Models: []string{"a"}}
			for i, s := range []Signals{utilised(80), utilised(20), utilised(50)} {
				if i != 1 {
					s.Unloaded = none
				}
				b.SetSignals(EndpointID(i), s)
			}
			hold(t, b, 0, 5)
			hold(t, b, 2, 2)
		}, 1},
		{"50 ms unloaded loses to 20,000 ms loaded", 2, func(b *Board) {
			b.SetSignals(0, Signals{Known: true, Unloaded: &Unloaded{Models: []string{"a"}}})
			b.Completed(0, 50*time.Millisecond, 1000)
			b.Completed(1, 20*time.Second, 1000)
		}, 1},
		{"but a full one takes nobody", 2, func(b *Board) {
			b.SetSignals(0, Signals{Known: true, Unloaded: &Unloaded{Models: []string{"a"}}})
			hold(t, b, 1, 10)
		}, 0},
		{"the faster one", 2, func(b *Board) { b.Completed(0, 2*time.Second, 1); b.Completed(1, time.Second, 1) }, 1},
		{"one that never answered is tried", 2, func(b *Board) { b.Completed(0, 20*time.Second, 1) }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := pointBoard(pointing(t), test.n, nil)
			test.state(b)
			q := prepare(t, b, ask)
			for _, c := range b.Explain(q).Candidates {
				if b.Stock(c.ID) == 10 && (len(c.Failed) != 1 || c.Failed[0].Tag != "no_capacity") {
					t.Errorf("a full endpoint fails %+v", c.Failed)
				}
			}
			wantPlaced(t, b, q, BelowLower, test.want)
		})
	}
	for _, loaded := range []EndpointID{0, 1} { // 10 for the model, and 10 less for a request: equals
		b := pointBoard(pointing(t, func(c *Config) { c.Points.Loaded = 10 }), 2, nil)
		b.SetSignals(1-loaded, Signals{Known: true, Unloaded: &Unloaded{Models: []string{"a"}}})
		hold(t, b, loaded, 1)
		wantPlaced(t, b, prepare(t, b, ask), BelowLower, 0)
	}
	b := pointBoard(pointing(t), 3, func(i int, e *Endpoint) { e.Priority = []int{0, 2, -1}[i] })
	hold(t, b, 1, 1) // 10 points less
	wantPlaced(t, b, prepare(t, b, ask), BelowLower, 1)
}

// hold places so many requests at an endpoint.
func hold(t testing.TB, b *Board, id EndpointID, n int) {
	t.Helper()
	for range n {
		e, _ := b.Snapshot().ByID(id)
		q, err := b.Scheduler().Prepare(b.Snapshot(), subsetOf(e.Address))
		if err != nil {
			t.Fatal(err)
		}
		b.PlaceAt(q, id)
	}
}

// In random pools, small and large, the choice is the endpoint with room that has the highest total, and the lowest ID
// among equals, whatever the earlier requests and statements.
func TestPointsAgainstSums(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := []int{3, 9, 3 * few}[seed%3]
		b := pointBoard(pointing(t), n, func(_ int, e *Endpoint) {
			e.Priority = r.IntN(3) - 1
			e.Models = []string{"a", "b"}
		})
		p := DefaultConfig().Points
		none := [][]string{nil, nil, {"a"}, {"b"}, {"a", "b"}}
		state := make([][]string, n)
		for range 400 {
			id := EndpointID(r.IntN(n))
			switch r.IntN(6) {
			case 0:
				s := utilised(r.Int32N(4) * 25)
				state[id] = none[r.IntN(len(none))]
				if state[id] != nil {
					s.Unloaded = &Unloaded{Models: state[id]}
				}
				b.SetSignals(id, s)
			case 1:
				b.Completed(id, time.Duration(r.IntN(3000))*time.Millisecond, r.Int64N(3000))
			case 2:
				if b.Stock(id) > 0 {
					give(b, id)
				}
			default:
				model := []string{"a", "b"}[r.IntN(2)]
				want, most := NoEndpoint, int64(0)
				for i := range n {
					s := &b.spots[i]
					unloaded := false
					for _, m := range state[i] {
						unloaded = unloaded || m == model
					}
					score := p.score(s.load(), !unloaded)
					if total := score.Total(); s.inFlight < 10 && (want == NoEndpoint || total > most) {
						want, most = EndpointID(i), total
					}
				}
				q := prepare(t, b, Ask{Model: model})
				if r.IntN(3) == 0 && want != NoEndpoint { // the request may not use the best
					except := &EndpointSet{}
					except.Add(want)
					next, most := NoEndpoint, int64(0)
					for i := range n {
						s := &b.spots[i]
						score := p.score(s.load(), !slices.Contains(state[i], model))
						if total := score.Total(); EndpointID(i) != want && s.inFlight < 10 && (next == NoEndpoint || total > most) {
							next, most = EndpointID(i), total
						}
					}
					if at := b.Place(q, BelowLower, except); at.Endpoint() != next {
						t.Fatalf("beside %d it is at %d, want %d", want, at.Endpoint(), next)
					}
					continue
				}
				wantPlaced(t, b, q, BelowLower, want)
			}
		}
		checkInvariants(t, b)
		// After a change of the pool, the statements of endpoints that left no longer count.
		b.SetSnapshot(NewSnapshot(2, []Endpoint{ready(1000, "10.9.9.9:80", "a")}))
		if len(b.unloaded) != 0 {
			t.Errorf("%d statements are left", len(b.unloaded))
		}
	}
}

func TestRandomTiesOfPoints(t *testing.T) {
	b := NewBoard(mustNew(t, func(c *Config) { c.Policy, c.TieBreak = PolicyMindRouter, TieRandom }), rand.New(rand.NewPCG(1, 2)))
	b.SetSnapshot(NewSnapshot(1, []Endpoint{ready(0, "10.0.0.1:80", "a"), ready(1, "10.0.0.2:80", "a"), ready(2, "10.0.0.3:80", "a")}))
	b.SetSignals(0, Signals{Known: true, Unloaded: &Unloaded{Models: []string{"a"}}})
	var counts [3]int
	for range 400 {
		at := b.Place(prepare(t, b, Ask{Model: "a"}), Unbounded, nil)
		counts[at.Endpoint()]++
		give(b, at.Endpoint())
	}
	if counts[0] != 0 || counts[1] < 150 || counts[2] < 150 {
		t.Errorf("drawn %v", counts)
	}
}

func TestPointsAreBounded(t *testing.T) {
	c := DefaultConfig()
	c.Policy = "points"
	c.Points = Points{Loaded: MaxPoints + 1, Queue: -1, Priority: MaxPriorityPoints + 1, QueueSlope: -1}
	err := c.Validate()
	for _, name := range []string{"Policy", "Points.Loaded", "Points.Queue", "Points.Priority", "Points.QueueSlope", "Points.Alpha", "Points.Scale"} {
		if err == nil || !strings.Contains(err.Error(), name+":") {
			t.Errorf("%s is not refused: %v", name, err)
		}
	}
	most := Points{
		Loaded: MaxPoints, Utilisation: MaxPoints, UtilisationUnknown: MaxPoints, Queue: MaxPoints, Throughput: MaxPoints, Latency: MaxPoints,
		LatencyUnknown: MaxPoints, Priority: MaxPriorityPoints, QueueSlope: maxQueueSlope, Alpha: 1, Scale: maxScale,
	}
	by := &pointed{most}
	for _, l := range []Load{
		{Priority: MaxPriority, Signals: utilised(0)},
		{Priority: -MaxPriority, Signals: utilised(100), Held: 1 << 40, Latency: longestAnswer, Pace: longestAnswer},
		{Priority: MaxPriority, Latency: 1, Pace: 1},
	} {
		bonus, _ := by.bonus()
		if s := by.standing(l); s < 0 || s+bonus > MostStanding {
			t.Errorf("%+v has the standing %d", l, s)
		}
	}
}

func BenchmarkPlaceByPoints(b *testing.B) {
	for _, n := range []int{100, 2000} {
		for _, unloaded := range []int{0, n / 2, n - 1} {
			b.Run(fmt.Sprintf("%d/unloaded=%d", n, unloaded), func(b *testing.B) {
				board := pointBoard(pointing(b), n, nil)
				none := &Unloaded{Models: []string{"a"}}
				for i := range unloaded {
					board.SetSignals(EndpointID(i), Signals{Known: true, Unloaded: none})
				}
				q, err := board.Scheduler().Prepare(board.Snapshot(), Ask{Model: "a"})
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					r := board.Place(q, BelowUpper, nil)
					board.Completed(r.Endpoint(), time.Second, 1000)
					board.Release(&r)
				}
			})
		}
	}
}

// A request for an adapter gets the points of a loaded model at endpoints that had requests for it and that it may use.
func TestPointsOfAdapters(t *testing.T) {
	for _, n := range []int{3, 3 * few} {
		b := pointBoard(pointing(t), n, func(_ int, e *Endpoint) { e.Models = []string{"a", "lora"} })
		ask := Ask{Model: "lora", Adapter: true}
		hold(t, b, 0, 1)
		wantPlaced(t, b, prepare(t, b, ask), BelowLower, 1, 1, 1) // it stays where it was loaded, though others are idle
		wantPlaced(t, b, prepare(t, b, Ask{Model: "a"}), BelowLower, 2)
		except := &EndpointSet{}
		except.Add(1)
		if at := b.Place(prepare(t, b, ask), BelowLower, except); n == 3 && at.Endpoint() != 0 && at.Endpoint() != 2 {
			t.Errorf("it is at %d, which it may not use", at.Endpoint())
		}
	}
}

// An engine with 10 of 10 requests is no_capacity, and one with as many tokens as its memory has is
// memory_insufficient. Both take the request later: it waits, and is not refused.
func TestTagsOfMindRouter(t *testing.T) {
	b := pointBoard(pointing(t), 2, nil)
	hold(t, b, 0, 10)
	b.SetTokenBounds(1, 1000, 1000)
	b.AddTokens(1, 1000)
	q, err := b.Scheduler().Prepare(b.Snapshot(), Ask{Model: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if !b.Place(q, BelowLower, nil).Empty() {
		t.Error("both are full, and one gets a request")
	}
	for i, want := range []string{"no_capacity", "memory_insufficient"} {
		if failed := b.Explain(q).Candidates[i].Failed; len(failed) != 1 || failed[0].Tag != want {
			t.Errorf("endpoint %d fails %+v, want %s", i, failed, want)
		}
	}
	b.AddTokens(1, -1)
	wantPlaced(t, b, q, BelowLower, 1)
}
