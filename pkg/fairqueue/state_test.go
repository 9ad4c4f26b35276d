package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Queues that reached the same state in different ways, at different times, give the same answers to the same calls.
// Random short histories meet often enough to compare.
func TestEqualStatesBehaveEqually(t *testing.T) {
	for _, discipline := range []Discipline{WFQ, VTC, FairShare} {
		for _, tieBreak := range tieBreaks {
			cfg := fourTiers(100_000)
			cfg.CapacityMode, cfg.TieBreak, cfg.TotalCapacity, cfg.FlowCapacity, cfg.Discipline = Shared, tieBreak, 6, 2, discipline
			t.Run(fmt.Sprint("discipline ", discipline, " ", tieBreak), func(t *testing.T) { equalStatesBehaveEqually(t, cfg) })
		}
	}
	for _, mode := range []CapacityMode{Reserved, Shared} {
		for _, tiers := range []TierMode{Strict, Weighted} {
			for _, tieBreak := range tieBreaks {
				cfg := fourTiers(100_000)
				cfg.CapacityMode, cfg.TierMode, cfg.TieBreak, cfg.TotalCapacity, cfg.FlowCapacity = mode, tiers, tieBreak, 6, 2
				t.Run(fmt.Sprint(mode, tiers, tieBreak), func(t *testing.T) { equalStatesBehaveEqually(t, cfg) })
			}
		}
	}
}

func equalStatesBehaveEqually(t *testing.T, cfg Config) {
	seen, met := map[string]uint64{}, 0
	for seed := range seeds(2000) {
		w := after(t, cfg, seed)
		other, ok := seen[w.state()]
		seen[w.state()] = seed
		if !ok {
			continue
		}
		met++
		twin, random := after(t, cfg, other), rand.New(rand.NewPCG(seed, 1))
		for step := range 30 {
			op, tier, flow := random.IntN(6), random.IntN(4), random.IntN(2)
			if a, b := w.do(op, tier, flow), twin.do(op, tier, flow); a != b {
				t.Fatalf("histories %d and %d, step %d: %s and %s", seed, other, step, a, b)
			}
			if w.state() != twin.state() {
				t.Fatalf("histories %d and %d, step %d: states differ", seed, other, step)
			}
		}
	}
	if met < 20 {
		t.Errorf("only %d histories met", met)
	}
}

// walk is a queue with its own clock.
type walk struct {
	*FairRequestQueue
	t   *testing.T
	now time.Time
}

// after returns a queue with a random history.
func after(t *testing.T, cfg Config, seed uint64) *walk {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &walk{queue(t, cfg), t, start.Add(time.Duration(seed) * time.Minute)}
	for range random.IntN(9) {
		w.do(random.IntN(6), random.IntN(4), random.IntN(2))
	}
	return w
}

func (w *walk) state() string { return string(w.AppendState(nil, w.now, time.Minute)) }

// do calls one random operation and returns its answer.
func (w *walk) do(op, tier, flow int) string {
	what := func(r *Request) string {
		if r == nil {
			return "nobody"
		}
		return fmt.Sprint(r.Tier, r.Flow, r.Cost, w.Waited(w.now, r) >= time.Second)
	}
	switch op {
	case 0, 1:
		displaced, err := w.Push(w.now, &Request{Flow: fmt.Sprint(flow), Tier: tier, Cost: Cost(1 + tier%2)})
		return fmt.Sprint(what(displaced), err)
	case 2, 3:
		c := w.Peek(w.now, Allowed{Tiers: AllTiers, Promote: true})
		if c.Request != nil {
			w.Pop(c)
			if op == 3 && tier == 0 {
				w.Requeue(c.Request)
			}
		}
		return fmt.Sprint(what(c.Request), c.Promoted)
	case 4:
		w.now = w.now.Add(time.Second)
		return "later"
	default:
		head := w.HeadIn(tier, "")
		if head != nil {
			w.Remove(head)
		}
		return what(head)
	}
}

// Only the order of the tiers' last promotions is state: the next promotion goes to the tier that has waited longest for
// one, whatever their numbers are.
func TestStateHasTheOrderOfPromotions(t *testing.T) {
	state := func(middle, low uint64) string {
		q := queue(t, fourTiers(100_000))
		q.tiers[2].promoted, q.tiers[3].promoted = middle, low
		return string(q.AppendState(nil, start, time.Minute))
	}
	if state(5, 3) == state(3, 5) {
		t.Error("whichever was promoted last, the state is the same")
	}
	if state(5, 3) != state(9, 4) {
		t.Error("the same order of promotions gives two states")
	}
}
