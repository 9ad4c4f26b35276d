package dispatch

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// load reaches a limit of 4 requests, 100 tokens or a cost of 100 in one unit only.
type load struct {
	requests int
	cost     fairqueue.Cost
	tokens   stock.Tokens
}

// loads has one load for each unit: many small requests, or one request that is large in one unit.
var loads = map[string]load{
	"requests": {4, 1, 1},
	"cost":     {1, 1000, 1},
	"tokens":   {1, 1, 1000},
}

// unitsTest drives a machine of one or more endpoints with 4 requests and 100 tokens each.
type unitsTest struct{ *shared }

// come makes n requests of a tier and flow arrive, otherwise like the load's, for some endpoints or all.
func (x unitsTest) come(n, tier int, flow string, l load, endpoints ...int) (all []*Waiter) {
	for range n {
		w := new(Waiter)
		a := Arrival{Flow: flow, Tier: tier, Cost: l.cost, Tokens: l.tokens, Placement: x.placement(endpoints...)}
		x.Arrive(x.clock, w, a)
		x.Told(w)
		all = append(all, w)
	}
	return all
}

// enable turns queueing on or off.
func (x unitsTest) enable(on bool) {
	cfg := x.Config()
	cfg.Enabled = on
	if err := x.Configure(x.clock, cfg); err != nil {
		panic(err)
	}
}

// small is a request that is small in every unit.
var small = load{1, 1, 1}

// waits makes a small request arrive and reports whether it waits.
func (x unitsTest) waits(tier int, flow string, endpoints ...int) bool {
	return x.come(1, tier, flow, small, endpoints...)[0].Stage() == StageWaiting
}

// inUnits are bounds of 4 requests and 100 tokens per endpoint.
func inUnits(c *Config) {
	perBackend(c, 4, 4)
	c.Stock.Tokens = stock.TokensConfig{Watermark: 100, Lower: 100, Upper: 100}
}

// rows has, for each row of the table in docs/tokens.md, a test whether a load makes the row's difference.
var rows = map[string]func(t *testing.T, l load) bool{
	"a flow's share of the dispatches (`flows.discipline`)": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 1, 1, func(c *Config) { c.Queue.Discipline = fairqueue.VTC })}
		going := x.come(1, 0, "c", small)[0]
		// Both flows get something; a gets the load, and where that is many requests, b gets as much at once.
		x.come(l.requests, 0, "a", l)
		x.come(1, 0, "b", load{1, fairqueue.Cost(l.requests), 1})
		a, b := x.come(1, 0, "a", small)[0], x.come(1, 0, "b", small)[0]
		for a.Stage() == StageWaiting && b.Stage() == StageWaiting {
			x.Complete(x.clock, going.Lease(), fairqueue.UnknownCost)
			going = x.Verdicts()[0]
			x.Told(going)
		}
		return b.Stage() == StageSent
	},
	"the queue's limits: `totalCapacity`, `flowCapacity`, `queueSize`": func(t *testing.T, l load) bool {
		refused := 0
		for _, limit := range []func(*Config){
			func(c *Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 4, 4 },
			func(c *Config) { c.Queue.FlowCapacity = 4 },
			func(c *Config) { c.Queue.Tiers[0].QueueSize = 4 },
		} {
			x := unitsTest{newShared(t, 1, 1, limit)}
			x.come(1, 0, "a", small)
			x.come(l.requests, 0, "a", l)
			if !x.waits(0, "a") {
				refused++
			}
		}
		if refused != 0 && refused != 3 {
			t.Fatalf("%d of 3 limits", refused)
		}
		return refused == 3
	},
	"the flow to displace when the queue is full: the one with the most for its weight": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 1, 1, func(c *Config) {
			c.Queue.TotalCapacity, c.Queue.FlowCapacity, c.Queue.GuaranteedTop = 6, 6, false
		})}
		x.come(1, 0, "first", small)
		suspects := x.come(l.requests, 0, "a", l)
		for _, flow := range []string{"b", "c", "d", "e", "f"}[:6-l.requests] {
			x.come(1, 0, flow, small)
		}
		x.come(1, 0, "new", small)
		return slices.ContainsFunc(suspects, func(w *Waiter) bool { return w.Outcome() == OutcomeDisplaced })
	},
	"the band over the pool: `watermarkPerBackend`, `watermarkTokensPerBackend` and their bounds": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 1, 4, inUnits)}
		x.come(l.requests, 0, "a", l)
		return x.waits(0, "b")
	},
	"a lane's bounds, summed over its backends": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 3, 4, inUnits)}
		x.come(2*l.requests, 0, "a", load{1, l.cost, min(l.tokens, 250)}, 0, 1)
		if l.tokens > 100 { // at one of the two
			x = unitsTest{newShared(t, 3, 4, inUnits)}
			x.come(1, 0, "a", load{1, 1, 250}, 0, 1)
		}
		return x.waits(0, "b", 0, 1)
	},
	"a backend's own bound, for all lanes": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 3, 4, inUnits)}
		for _, w := range x.come(l.requests, 0, "a", l) {
			x.ServedElsewhere(x.clock, w.Lease(), 0, 200)
		}
		x.come(1, 0, "b", load{1, 1, 100}, 1)
		x.come(1, 0, "b", load{1, 1, 100}, 2)
		return x.waits(0, "c", 0, 1, 2)
	},
	"caps per tenant: `maxInFlightPerFlow`, `maxInFlightPerFlowPerBackend`": func(t *testing.T, l load) bool {
		return capsCount(t, l, func(c *Config) { c.MaxInFlightPerFlow = 4 }, func(c *Config) { c.MaxInFlightPerFlowPerBackend = 4 })
	},
	"caps per tenant: `maxTokensInFlightPerFlow`, `maxTokensInFlightPerFlowPerBackend`": func(t *testing.T, l load) bool {
		return capsCount(t, l, func(c *Config) { c.MaxTokensInFlightPerFlow = 100 },
			func(c *Config) { c.MaxTokensInFlightPerFlowPerBackend = 100 })
	},
	"capacity and reservations: `reservedFloor`, `reservedPerSlot`": func(t *testing.T, l load) bool {
		counted := 0
		for _, reserve := range []func(*Config){
			func(c *Config) { c.Tiers[0].ReservedFloor = 4 }, func(c *Config) { c.Tiers[0].ReservedPerSlot = stock.One / 2 },
		} {
			x := unitsTest{newShared(t, 2, 4, twoTiers, inUnits, func(c *Config) { c.Tiers[0].CanPreempt = false }, reserve)}
			x.come(l.requests, 1, "a", load{1, l.cost, min(l.tokens, 150)})
			if x.waits(1, "b") {
				counted++
			}
		}
		if counted == 1 {
			t.Fatal("one of two")
		}
		return counted == 2
	},
	"promoted requests in flight: `promotionBudget`": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 2, 8, twoTiers, inUnits, func(c *Config) {
			perBackend(c, 8, 8)
			c.Tiers[0] = TierConfig{ReservedFloor: 16} // so low ones go by promotion only
			c.Queue.PromotionBudget = 250_000          // of 16
			c.Queue.Tiers[1].StarvationThreshold = time.Second
		})}
		low := x.come(l.requests, 1, "a", load{1, l.cost, min(l.tokens, 150)})
		x.clock = x.clock.Add(time.Second)
		x.Advance(x.clock)
		for _, w := range low {
			if x.Told(w); w.Stage() != StageSent || !w.Lease().Promoted() {
				t.Fatalf("stage %d", w.Stage())
			}
		}
		last := x.come(1, 1, "b", small)[0]
		x.clock = x.clock.Add(time.Second)
		x.Advance(x.clock)
		return last.Stage() == StageWaiting
	},
	"the room that a victim must make for a preemption": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 1, 4, twoTiers, inUnits)}
		for _, w := range x.come(l.requests, 1, "a", load{1, l.cost, 1}) {
			x.FirstByte(w.Lease())
			x.Raise(x.clock, w.Lease(), 1, l.tokens)
		}
		for range max(1, 4-l.requests) { // the last one is a victim; of many, it goes beyond the bound
			x.enable(false)
			x.Arrive(x.clock, new(Waiter), Arrival{Flow: "b", Tier: 1, Placement: x.placement()})
			x.enable(true)
		}
		high := x.come(1, 0, "high", small)[0]
		if x.Preemptor() != nil {
			x.Preempt(x.clock)
		}
		return high.Stage() == StageWaiting
	},
	"the order of victims, with `victimOrder: least-cost`": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 1, 4, twoTiers, func(c *Config) { perBackend(c, 2, 2); c.VictimOrder = LeastCostFirst })}
		old, young := x.come(1, 1, "a", small)[0], x.come(1, 1, "b", load{1, l.cost, l.tokens})[0]
		x.come(1, 0, "high", small)
		if x.Preemptor() != nil {
			x.Preempt(x.clock)
		}
		if (old.Outcome() == OutcomePreempted) == (young.Outcome() == OutcomePreempted) {
			t.Fatal("one of both is to be preempted")
		}
		return old.Outcome() == OutcomePreempted
	},
	"the stock of other replicas": func(t *testing.T, l load) bool {
		x := unitsTest{newShared(t, 1, 4, inUnits)}
		x.others(stock.Foreign{ID: 0, Held: stock.Amount{Requests: l.requests, Tokens: l.tokens}})
		return x.waits(0, "b")
	},
}

// capsCount reports whether both caps count the load.
func capsCount(t *testing.T, l load, caps ...func(*Config)) bool {
	counted := 0
	for _, limit := range caps {
		x := unitsTest{newShared(t, 2, 9, limit)}
		x.come(l.requests, 0, "a", l, 0)
		if x.waits(0, "a", 0) {
			counted++
		}
		if x.waits(0, "b", 0) {
			t.Fatal("another flow waits")
		}
	}
	if counted == 1 {
		t.Fatal("one of two")
	}
	return counted == 2
}

// The table in docs/tokens.md has the unit of every limit and comparison. For each unit there is a load that reaches
// the limit in that unit only. It must make a difference exactly if the table says so.
func TestUnits(t *testing.T) {
	page, err := os.ReadFile("../../docs/tokens.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Units\n")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); len(cells) == 2 && cells[0] != "| limit" {
			said[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSuffix(strings.TrimSpace(cells[1]), " |")
		}
	}
	if len(said) != len(rows) {
		t.Errorf("%d rows, and %d are tried", len(said), len(rows))
	}
	for row, counts := range said {
		try := rows[row]
		if try == nil {
			t.Errorf("nothing tries the row %q", row)
			continue
		}
		var units []string
		for _, unit := range []string{"cost", "requests", "tokens"} {
			if try(t, loads[unit]) {
				units = append(units, unit)
			}
		}
		if got := strings.Join(units, " and "); got != counts {
			t.Errorf("%s: counts %q, the page says %q", row, got, counts)
		}
	}
}
