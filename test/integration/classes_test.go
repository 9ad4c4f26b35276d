package integration

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// twoClasses is Dynamo's profile with quanta of 512 and 128, and the cost in a header of the gateway's.
const twoClasses = `profile: dynamo-drr
classes: [ { name: gold, quantum: 512 }, { name: iron, quantum: 128, order: wspt } ]
trustedHeaders: { cost: x-cost }
` + single

// inClass is a request of a class with a cost.
func inClass(class, tag string, cost int, header ...string) ask {
	return ask{header: append([]string{
		"x-tenant", tag, "x-dynamo-meta-policy-class", class, "x-cost", strconv.Itoa(cost),
	}, header...)}
}

// Quanta of 512 and 128, both classes always waiting with requests of 512 tokens: four of the first for each of the
// second, from the first grant on (parity: dynamo 5).
func TestClassesShareByQuantum(t *testing.T) {
	t.Parallel()
	const grants, workers = 200, 16
	v := newValve()
	s := start(t, setup{models: v.one(), config: twoClasses})
	plug := s.begin(inClass("gold", "plug", 512))
	s.epp.waitFor(1, "weir_stock_level")
	var all sync.WaitGroup
	var over atomic.Bool
	for _, class := range []string{"gold", "iron"} {
		for range workers {
			all.Go(func() {
				for !over.Load() {
					wantServed(t, "a backlogged request", s.send(inClass(class, class, 512)))
				}
			})
		}
	}
	s.epp.waitFor(2*workers, "weir_queue_length")
	v.pass(1)
	wantServed(t, "the plug", plug.wait())
	v.pass(grants)
	over.Store(true)
	v.open()
	all.Wait()
	s.epp.settled()
	order := tenants(s.models[0])[1 : 1+grants]
	gold := 0
	for i, class := range order {
		if class == "gold" {
			gold++
		}
		if n := i + 1; 5*gold < 4*n-8 || 5*gold > 4*n+8 {
			t.Fatalf("after %d grants %d are of gold, want four fifths: %v", n, gold, order[:n])
		}
	}
}

// promptOf is a request of a class for a prompt of about so many tokens.
func promptOf(class, tag string, tokens int) ask {
	return ask{
		header: []string{"x-tenant", tag, "x-dynamo-meta-policy-class", class},
		body: fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}],"max_tokens":4}`,
			strings.Repeat("word ", tokens)),
	}
}

// Without stated costs, the profile counts the tokens of prompts: they order shortest first, quanta are spent in them,
// and a full queue evicts no request.
func TestDynamoCountsTokensOfPrompts(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: `profile: dynamo-drr
classes: [ { name: long, quantum: 500 }, { name: short, quantum: 500, order: wspt } ]
fairRequestQueue: { totalCapacity: 13, flowCapacity: 13 }
` + single})
	s.begin(promptOf("long", "plug", 1))
	s.epp.waitFor(1, "weir_stock_level")
	waiting := []ask{promptOf("short", "900", 900), promptOf("short", "300", 300), promptOf("short", "600", 600)}
	for range 5 {
		waiting = append(waiting, promptOf("long", "long", 1000), promptOf("short", "100", 100))
	}
	for i, r := range waiting {
		s.begin(r)
		s.epp.waitFor(float64(i+1), "weir_queue_length")
	}
	if got := s.send(promptOf("short", "late", 1)); got.reason() != "queue-full" {
		t.Errorf("beyond the queue: %d %q", got.status, got.reason())
	}
	v.open()
	s.epp.settled()
	var short []string
	first := 0 // of the short class before the second long prompt
	long := 0
	for _, tag := range tenants(s.models[0])[1:] {
		if tag == "long" {
			long++
			continue
		}
		if short = append(short, tag); long < 2 {
			first++
		}
	}
	if got := strings.Join(short, " "); got != "100 100 100 100 100 300 600 900" {
		t.Errorf("shortest first: %s", got)
	}
	if first < 6 {
		t.Errorf("%d short prompts went before the second long one, want those of as many tokens", first)
	}
	if got := s.epp.outcomes(); got["displaced"] != 0 || got["queue-full"] != 1 {
		t.Errorf("outcomes are %v", got)
	}
}

// Within a flow or a class with order edf the earliest deadline goes first: that of the deadline header, or else the
// end of the TTL of 30 s.
func TestEarliestDeadlineFirst(t *testing.T) {
	t.Parallel()
	const bounds = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1, " +
		"deadlineHeaders: [x-deadline-ms] }\n"
	for name, config := range map[string]string{
		"flows": "profile: wfq\nflows: { key: [\"header:x-flow\"], order: edf }\n" + bounds,
		"classes": "profile: dynamo-drr\nflows: { key: [\"header:x-flow\"] }\n" +
			"classes: [ { name: other, quantum: 9 }, { name: urgent, quantum: 9, order: edf } ]\n" + bounds,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newValve()
			s := start(t, setup{models: v.one(), config: config})
			due := func(tag, within string) ask {
				r := ask{header: []string{"x-tenant", tag, "x-flow", "one", "x-dynamo-meta-policy-class", "urgent"}}
				if within != "" {
					r.header = append(r.header, "x-deadline-ms", within)
				}
				return r
			}
			s.begin(due("plug", ""))
			s.epp.waitFor(1, "weir_stock_level")
			for i, r := range []ask{
				due("120s", "120000"), due("none", ""), due("60s", "60000"), due("also-none", ""), due("25s", "25000"), due("20s", "20000"),
			} {
				s.begin(r)
				s.epp.waitFor(float64(i+1), "weir_queue_length")
			}
			v.open()
			s.epp.settled()
			if got := strings.Join(tenants(s.models[0])[1:], " "); got != "20s 25s none also-none 60s 120s" {
				t.Error(got)
			}
		})
	}
}

// Between the bounds, 18 and 22, a class whose clients send the next request at once leaves another class its turns
// (ADR 0097). The 22 clients of b hold the whole band before a's arrive, and each class gets half of the grants.
func TestNoClassStarvesInTheBand(t *testing.T) {
	t.Parallel()
	const upper, grants = 22, 100
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(2 * upper))}, config: `profile: dynamo-drr
classes: [ { name: a, quantum: 10 }, { name: b, quantum: 10 } ]
trustedHeaders: { cost: x-cost }
fairRequestQueue: { queueTTL: 1h }
requestQueueController: { watermarkPerBackend: 20, lowerBoundPerBackend: 18, upperBoundPerBackend: 22 }
`})
	var all sync.WaitGroup
	var over atomic.Bool
	sendAlways := func(class string) {
		for range upper {
			all.Go(func() {
				for !over.Load() {
					wantServed(t, "a request of class "+class, s.send(inClass(class, class, 10)))
				}
			})
		}
	}
	sendAlways("b")
	s.epp.waitFor(upper, "weir_stock_level")
	sendAlways("a")
	s.epp.waitFor(upper, "weir_queue_length")
	for range grants { // one by one, so that the stock does not fall below the lower bound before a client has sent the next
		v.pass(1)
		expect.Eventually(t, "all clients have sent their next requests", func() error {
			if held, waiting := s.epp.value("weir_stock_level"), s.epp.value("weir_queue_length"); held+waiting != 2*upper {
				return fmt.Errorf("%v held and %v waiting", held, waiting)
			}
			return nil
		})
	}
	over.Store(true)
	v.open()
	all.Wait()
	s.epp.settled()
	served := map[string]int{}
	for _, class := range tenants(s.models[0])[upper : upper+grants] {
		served[class]++
	}
	if served["a"] < 2*grants/5 || served["b"] < 2*grants/5 {
		t.Errorf("of %d grants beside full bounds %v, want about half for each class", grants, served)
	}
}
