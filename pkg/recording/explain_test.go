package recording_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Explain says what happened: how many requests went before this one, of whose tier and flow, where it went, and how it
// ended. The driver's own notes are the oracle.
func TestExplain(t *testing.T) {
	d := newDriver(t, 13, 1<<20, nil)
	for range 1400 {
		d.step()
	}
	text := d.bytes()
	waited, ended := 0, map[dispatch.Outcome]int{}
	for number := uint64(1); number <= d.machine.Arrived(); number += explained {
		said, err := d.explain(text, strconv.FormatUint(number, 10))
		if err != nil {
			t.Fatalf("request %d: %v", number, err)
		}
		want := d.lifeOf(number)
		for _, fact := range want.facts {
			if !strings.Contains(said, fact) {
				t.Errorf("request %d: it is not said that %q:\n%s", number, fact, said)
			}
		}
		before := regexp.MustCompile(`Before it went (\d+) requests`).FindAllStringSubmatch(said, -1)
		sum := 0
		for _, b := range before {
			n, _ := strconv.Atoi(b[1])
			sum += n
		}
		if sum != want.before {
			t.Errorf("request %d: %d went before it, and it is said that %d did:\n%s", number, want.before, sum, said)
		}
		if want.before > 0 {
			waited++
		}
		ended[want.outcome]++
		if t.Failed() {
			return
		}
	}
	if few := 6 / int(explained); waited < 7*few || ended[dispatch.OutcomePreempted] < few || ended[dispatch.OutcomeTTLExpired] < few {
		t.Errorf("%d waited, ended as %v: the run is too tame", waited, ended)
	}
	if _, err := d.explain(text, "nobody"); err == nil {
		t.Error("a request that never was is explained")
	}
}

// known is what the driver knows about a request.
type known struct {
	before  int // who went while it waited
	outcome dispatch.Outcome
	facts   []string
}

// lifeOf returns what the driver's notes say about a request.
func (d *driver) lifeOf(number uint64) (k known) {
	waits, granted := false, false
	for _, n := range d.story {
		switch {
		case n.number != number:
			if waits && (n.stage == dispatch.StageGranted || n.stage == dispatch.StageSent) {
				k.before++
			}
			continue
		case n.stage == dispatch.StageWaiting && granted:
			k.facts = append(k.facts, "it waits again")
		case n.stage == dispatch.StageWaiting:
			k.facts = append(k.facts, fmt.Sprintf("flow %q", n.flow), "It had to wait")
		case n.stage == dispatch.StageGranted:
			k.facts = append(k.facts, "It was released after", "It went to "+n.endpoint)
		case n.stage == dispatch.StageSent:
			k.facts = append(k.facts, "It went at once", "It went to "+n.endpoint)
		case n.stage == dispatch.StageEnded:
			k.outcome = n.outcome
			k.facts = append(k.facts, "It ended as "+n.outcome.String())
			if n.outcome == dispatch.OutcomePreempted {
				k.facts = append(k.facts, "Its place was taken by request")
			}
		}
		waits, granted = n.stage == dispatch.StageWaiting, n.stage == dispatch.StageGranted
	}
	return k
}

// In a pool of one slot, a request of a higher tier and an earlier one of the same flow go before a request, and
// Explain says by which right.
func TestExplainSaysByWhichRight(t *testing.T) {
	d := newQuietDriver(t)
	first := d.arriveAs("a", 1, "first")
	d.arriveAs("a", 1, "second")
	d.arriveAs("a", 1, "the one")
	d.arriveAs("b", 0, "urgent")
	d.complete(first)
	for range 3 {
		d.completeSome()
	}
	said, err := d.explain(d.bytes(), "the one")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Request the one arrived at", `flow "a", cost 1, any endpoint`,
		"It found 1 requests waiting, of 1 flows, and a stock of 1 at 1 ready endpoints. Their lower bounds, for releases, add up to 1, their upper bounds, for bypasses, to 1.",
		"It had to wait: tier default.",
		"It waited for the stock at an endpoint to fall below its lower bound, and for its turn.",
		"Before it went 2 requests:", "They are:",
		"* 1: its tier is higher", "* 1: it is of the same flow and had arrived before",
		"(urgent) of flow \"b\", tier critical, after 2ms: its tier is higher",
		"Its flow, of weight 1, was entitled to 100 % of its tier while it waited, and got 1 of its 1 releases (100 %).",
		"It was released after 4ms.", "It went to 10.0.0.1:80.", "10.0.0.1:80: 0 in flight", "(chosen)",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it is not said that %q", want)
		}
	}
	if t.Failed() {
		t.Log(said)
	}
}

// Where tenants have users, Explain says whose a request is, what its user was entitled to, and when it waited for its user's cap
// or its user's turn.
func TestExplainSaysWhichUser(t *testing.T) {
	for name, test := range map[string]struct {
		most int // in flight of each user
		want []string
	}{
		"turns": {0, []string{
			`flow "acme" (user "ann"), cost 1`, "Before it went 4 requests:",
			"* 2: it is of the same flow and had arrived before", "* 1: it was its user's turn, by the weights of the tenant's users",
			"* 1: it was its flow's turn, by the flows' weights",
			`Its user "ann", of weight 1, was entitled to 25 % to 100 % of its tier, and got 2 of the 3 releases of its flow.`,
		}},
		"cap": {1, []string{
			"It waited since its user had as many requests in flight as it may have; then for the stock at an endpoint to fall",
			"* 1: this request's user was at its cap",
			`Its user "ann", of weight 1, was entitled to`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newQuietDriverOf(t, func(c *dispatch.Config) {
				c.Queue.Levels, c.Queue.ByLevel = 2, make([]fairqueue.LevelConfig, 2)
				c.Levels = []dispatch.LevelCaps{{}, {MaxInFlight: test.most}}
			})
			as := func(tenant, user, name string) *life {
				return d.offered(dispatch.Arrival{
					Flow: tenant, Tier: 1, Cost: 1, Placement: d.anywhere(), Path: &fairqueue.Path{Under: []string{user}},
				}, name)
			}
			as("acme", "ann", "first")
			as("acme", "ann", "second")
			as("acme", "ann", "third")
			as("acme", "ann", "the one")
			as("acme", "bob", "bob's")
			as("other", "dan", "dan's")
			for range 6 {
				d.completeSome()
			}
			said, err := d.explain(d.bytes(), "the one")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("it is not said that %q", want)
				}
			}
			if t.Failed() {
				t.Log(said)
			}
		})
	}
}

// A request that has waited beyond its tier's threshold goes before one of a higher tier, and Explain says why.
func TestExplainSaysWhoWasStarved(t *testing.T) {
	d := newQuietDriverOf(t, func(c *dispatch.Config) {
		c.Queue.Tiers[1].StarvationThreshold, c.Queue.PromotionBudget = time.Second, 1_000_000
	})
	first := d.arriveAs("a", 1, "first")
	d.arriveAs("a", 1, "old")
	d.now = d.now.Add(2 * time.Second)
	d.arriveAs("b", 0, "the one")
	d.complete(first)
	d.completeSome()
	said, err := d.explain(d.bytes(), "the one")
	if err != nil {
		t.Fatal(err)
	}
	if want := "* 1: it had waited beyond its tier's starvation threshold"; !strings.Contains(said, want) {
		t.Errorf("it is not said that %q:\n%s", want, said)
	}
}

// Explain says which endpoints a request may use: those of its model, of a subset, or of both.
func TestExplainSaysWhichEndpoints(t *testing.T) {
	d := newQuietDriver(t)
	d.snapshot = scheduling.NewSnapshot(2, []scheduling.Endpoint{{ID: 0, Address: "10.0.0.1:80", Models: []string{"m"}, Ready: true}})
	d.board.SetSnapshot(d.snapshot)
	for name, test := range map[string]struct {
		ask  scheduling.Ask
		want string
	}{
		"model":  {scheduling.Ask{Model: "m"}, `model "m".`},
		"subset": {scheduling.Ask{Subset: scheduling.Subset{Set: true, Entries: []string{"10.0.0.1"}}}, "a subset of 1 endpoints."},
		"both": {
			scheduling.Ask{Model: "m", Subset: scheduling.Subset{Set: true, Entries: []string{"10.0.0.1"}}},
			`model "m" within a subset of 1 endpoints.`,
		},
	} {
		q, err := d.scheduler.Prepare(d.snapshot, test.ask)
		if err != nil {
			t.Fatal(err)
		}
		d.offered(dispatch.Arrival{Flow: "a", Tier: 1, Cost: 1, Placement: q}, name)
		said, err := d.explain(d.bytes(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, test.want) {
			t.Errorf("%s: it is not said that %q:\n%s", name, test.want, said)
		}
	}
}

// Explain refuses a file whose end is damaged, even if the request is in the part that can be read.
func TestExplainRefusesADamagedFile(t *testing.T) {
	d := newQuietDriver(t)
	first := d.arriveAs("a", 1, "first")
	d.complete(first)
	text := d.bytes()
	if _, err := d.explain(text, "first"); err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 0xff
	if said, err := d.explain(text, "first"); err == nil {
		t.Errorf("explained:\n%s", said)
	}
}

// Explain says which requests have overtaken one because of what engines have cached, and what that has saved.
func TestExplainSaysWhatOvertakingSaves(t *testing.T) {
	d := newQuietDriverOf(t, func(c *dispatch.Config) {
		c.Queue.Order, c.Queue.LocalityQuantum = fairqueue.Locality, 10
	})
	d.snapshot = scheduling.NewSnapshot(2, []scheduling.Endpoint{
		{ID: 0, Address: "10.0.0.1:80", Ready: true}, {ID: 1, Address: "10.0.0.2:80", Ready: true},
	})
	d.board.SetSnapshot(d.snapshot)
	ready := []stock.Backend{{ID: 0}, {ID: 1}}
	d.recorder.Backends(d.now, ready, nil)
	d.call(func() { d.machine.SetBackends(d.now, ready, nil) })
	offer := func(flow, name string, cached ...scheduling.Cached) *life {
		p := d.anywhere()
		if len(cached) > 0 {
			p.(*scheduling.Query).Rate(&scheduling.Ratings{Prompt: 5000, Above: cached})
		}
		return d.offered(dispatch.Arrival{Flow: flow, Tier: 1, Cost: 1, Placement: p}, name)
	}
	first := offer("z", "first")
	offer("z", "other")
	offer("a", "the one", scheduling.Cached{ID: 1, Tokens: 4000})
	another := offer("b", "of another", scheduling.Cached{ID: 0, Tokens: 3000})
	offer("c", "a bystander")
	d.complete(first)
	own := offer("a", "of its own", scheduling.Cached{ID: 0, Tokens: 3000})
	d.complete(another)
	d.complete(own)
	said, err := d.explain(d.bytes(), "the one")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"* 2: an engine with room had more of its prompt cached, so it took this one's turn",
		"It was overtaken by 2 of them, for a saving of 8000 tokens that no engine had to read.",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it is not said that %q:\n%s", want, said)
		}
	}
	if said, err = d.explain(d.bytes(), "a bystander"); err != nil ||
		!strings.Contains(said, "* 2: an engine with room had more of its prompt cached, so it took another one's turn") ||
		strings.Contains(said, "overtaken by") {
		t.Errorf("%v\n%s", err, said)
	}
}

// Where requests cost tokens, a flow's part of the releases says little: Explain says its part of their cost as well, and
// how its share changed while the request waited.
func TestExplainSaysSharesOfTheCost(t *testing.T) {
	d := newQuietDriver(t)
	costs := func(flow string, cost fairqueue.Cost, name string) *life {
		return d.offered(dispatch.Arrival{Flow: flow, Tier: 1, Cost: cost, Placement: d.anywhere()}, name)
	}
	first := costs("a", 10, "first")
	costs("a", 30, "second")
	costs("a", 10, "the one")
	costs("b", 10, "another")
	d.complete(first)
	for range 3 {
		d.completeSome()
	}
	said, err := d.explain(d.bytes(), "the one")
	if err != nil {
		t.Fatal(err)
	}
	const want = "was entitled to 50 % to 100 % of its tier while it waited, and got 1 of its 2 releases (50 %), " +
		"which is 75 % of their cost as it was charged."
	if !strings.Contains(said, want) {
		t.Errorf("it is not said that %q:\n%s", want, said)
	}
}

// The right is that of the configuration: who shares by no weights is not said to.
func TestExplainSaysTheRightOfTheConfiguration(t *testing.T) {
	path := func(class string, priority int) *fairqueue.Path {
		return &fairqueue.Path{Class: class, Priority: priority}
	}
	for _, test := range []struct {
		name    string
		change  func(*fairqueue.Config)
		another dispatch.Arrival // goes before the one
		late    bool             // it arrives after the one
		want    string
		shares  bool
	}{
		{
			"no discipline", func(c *fairqueue.Config) { c.Discipline = fairqueue.OneFlow },
			dispatch.Arrival{Flow: "b"},
			false, "it had arrived before", false,
		},
		{
			"weights", func(c *fairqueue.Config) { c.Weights = map[string]fairqueue.Weight{"b": 9 * fairqueue.WeightOne} },
			dispatch.Arrival{Flow: "b"},
			true, "it was its flow's turn, by the flows' weights", true,
		},
		{
			"classes", func(c *fairqueue.Config) {
				c.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 1}, {Name: "y", Quantum: 9}}
			},
			dispatch.Arrival{Flow: "a", Path: path("y", 0)},
			false, "it was its class's turn, by the classes' quanta", true,
		},
		{
			"rings", func(c *fairqueue.Config) {
				c.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 9, Ring: "of m"}, {Name: "x", Quantum: 1}}
			},
			dispatch.Arrival{Flow: "a", Path: &fairqueue.Path{Ring: "of m", Class: "x"}},
			false, "it was its ring's turn: the rings of classes take turns", true,
		},
		{
			"an order of its own", func(c *fairqueue.Config) {
				c.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 1, Order: fairqueue.WSPT}}
				c.Priorities = true
			},
			dispatch.Arrival{Flow: "a", Path: path("x", 9)},
			true, "it is more urgent or costs less, or had arrived before", true,
		},
		{
			"deadlines", func(c *fairqueue.Config) { c.Order = fairqueue.EDF },
			dispatch.Arrival{Flow: "a", Deadline: start.Add(20 * time.Second)},
			true, "it is more urgent, or its deadline is earlier, or is the same and it had arrived before", true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newQuietDriverOf(t, func(c *dispatch.Config) { test.change(&c.Queue) })
			first := d.arriveAs("z", 1, "first")
			another := func() {
				a := test.another
				a.Tier, a.Cost, a.Placement = 1, 1, d.anywhere()
				d.offered(a, "another")
			}
			if !test.late {
				another()
			}
			d.offered(dispatch.Arrival{Flow: "a", Tier: 1, Cost: 5, Path: path("x", 0), Placement: d.anywhere()}, "the one")
			if test.late {
				another()
			}
			d.complete(first)
			for range 2 {
				d.completeSome()
			}
			said, err := d.explain(d.bytes(), "the one")
			if err != nil {
				t.Fatal(err)
			}
			if want := "* 1: " + test.want + "\n"; !strings.Contains(said, want) || strings.Contains(said, "was entitled to") != test.shares {
				t.Errorf("it is not said that %q, or of what share:\n%s", want, said)
			}
		})
	}
}

// A class that is at its limit, and one for which the engines are too busy, are named.
func TestExplainNamesLimitsAndBusyEngines(t *testing.T) {
	one, ten := int64(0), int64(10)
	d := newQuietDriverOf(t, func(c *dispatch.Config) {
		c.Queue.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 9}, {Name: "y", Quantum: 9, Limits: fairqueue.ClassLimits{RawTokens: &one}}}
		c.Classes = []dispatch.ClassConfig{{Busy: scheduling.BusyRule{PrefillTokens: &ten}}, {}}
		for i := range c.Tiers {
			c.Tiers[i].CanPreempt = false
		}
	})
	offer := func(class, name string) *life {
		q := d.anywhere().(*scheduling.Query)
		q.Rate(&scheduling.Ratings{Prompt: 11})
		return d.offered(dispatch.Arrival{Flow: "a", Tier: 1, Path: &fairqueue.Path{Class: class, Prompt: fairqueue.PromptOf(11, 0)}, Placement: q}, name)
	}
	first := offer("x", "first")
	offer("x", "waits")
	offer("y", "too many")
	d.complete(first)
	for name, want := range map[string]string{
		"waits":    "It waited since the endpoints that it may use were too busy reading prompts for its class.",
		"too many": `Its class "y" had reached its limit of raw_isl_tokens: 0 waited, and the limit is 0.`,
	} {
		said, err := d.explain(d.bytes(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, want) {
			t.Errorf("it is not said that %q:\n%s", want, said)
		}
	}
}
