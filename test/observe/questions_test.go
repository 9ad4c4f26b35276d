package observe

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// slots returns an engine that serves each request in the same time.
func slots(n int, each time.Duration) modelsim.Config { return modelsim.Fixed(n, each) }

// two returns two engines of this kind.
func two(config modelsim.Config) []modelsim.Config { return []modelsim.Config{config, config} }

// bounded is a configuration of Weir with this bound of requests for each engine.
func bounded(n string) string { return "requestQueueController: { slotsPerBackend: " + n + " }\n" }

// fullness are the panels that have values whenever Weir serves requests.
var fullness = []string{
	"Why are requests rejected?", "Who waits?", "How full is each engine?", "Which engine has a queue of its own?",
	"Which engine is not ready?", "Which engine is slow?", "Which engine hangs?", "Which engine fails?",
	"Is anything passing Weir by?", "Is a tier starved?",
}

// A tenant with more requests than its places in the queue is rejected, and the panels name it. The alert fires if most
// tenants are rejected.
func TestWhyAndWhoseRequestsAreRejected(t *testing.T) {
	t.Parallel()
	r := start(t, setup{
		name: "rejections", engines: two(slots(2, 200*time.Millisecond)),
		config: bounded("2") + "fairRequestQueue: { totalCapacity: 100, flowCapacity: 4 }\n",
	})
	r.load(1, "quiet")
	r.healthy(fullness...)
	r.load(24, "noisy")
	r.red("Why are requests rejected?", "outcome", "flow-full")
	r.red("Whose requests are rejected?", "flow", "noisy")
	r.alarmed() // it is one of two
	r.load(24, "noisy, too")
	r.alarmed("WeirRejecting")
}

// Other tenants wait for the tenant whose long requests fill the engines. It waits itself, but not for them.
func TestWhoWaitsForWhom(t *testing.T) {
	t.Parallel()
	engine := slots(2, 200*time.Millisecond)
	engine.Quirk = modelsim.Quirk{
		Match: func(r *http.Request) bool { return r.Header.Get("x-long") != "" }, HeaderDelay: 8 * time.Second,
	}
	r := start(t, setup{name: "waiting", engines: two(engine), config: bounded("2")})
	stop := r.load(1, "quiet")
	r.healthy(fullness...)
	stop()
	began := time.Now()
	r.load(32, "noisy", "x-long", "yes")
	r.becomesRed("How full is each engine?", "endpoint", r.engines[0].Address())
	r.becomesRed("How full is each engine?", "endpoint", r.engines[1].Address())
	r.load(2, "quiet")
	r.red("Who waits?", "flow", "noisy")
	r.red("Whom do they wait for?", "flow", "noisy")
	past := r.anHourAgo(began)
	past.red("Whom do they wait for?", "flow", "noisy")
	past.notRed("Which engine is slow?", "Which engine fails?", "Which engine is not ready?")
	r.becomesRed("How long do they wait?", "flow", "quiet")
	r.alarmed()
}

// An engine that takes longer than the other one is slow. One that does not end a request hangs.
func TestWhichEngineIsSlowAndWhichHangs(t *testing.T) {
	t.Parallel()
	r := start(t, setup{name: "slow"})
	r.load(4, "team")
	r.healthy(fullness...)
	began := time.Now()
	slow, hangs := r.engines[0], r.engines[1]
	slow.Inject(-1, modelsim.Quirk{HeaderDelay: 500 * time.Millisecond})
	r.red("Which engine is slow?", "endpoint", slow.Address())
	past := r.anHourAgo(began)
	past.red("Which engine is slow?", "endpoint", slow.Address())
	past.notRed("Who waits?", "Whom do they wait for?", "Whose requests are rejected?")
	hangs.Inject(1, modelsim.Quirk{HeaderDelay: time.Hour})
	r.red("Which engine hangs?", "endpoint", hangs.Address())
	r.alarmed()
}

// An engine that answers with errors fails. One without answers is not ready, and with the last one an alert begins.
func TestWhichEngineFailsAndWhichIsNotReady(t *testing.T) {
	t.Parallel()
	r := start(t, setup{name: "failing"})
	r.load(2, "team")
	r.healthy(fullness...)
	r.engines[0].Inject(-1, modelsim.Quirk{Status: http.StatusInternalServerError})
	r.red("Which engine fails?", "endpoint", r.engines[0].Address())
	r.becomesRed("Which engine fails?", "query", "B") // its circuit is open
	r.engines[0].Close()
	r.red("Which engine is not ready?", "endpoint", r.engines[0].Address())
	r.engines[1].Close()
	r.alarmed("WeirNoReadyBackends", "WeirServedElsewhere") // until Weir notices, Envoy tries the other one
}

// With a bound above an engine's slots requests wait inside the engine.
func TestWhichEngineHasAQueueOfItsOwn(t *testing.T) {
	t.Parallel()
	r := start(t, setup{
		name: "overfull", engines: []modelsim.Config{slots(2, 300*time.Millisecond), slots(16, 300*time.Millisecond)}, config: bounded("16"),
	})
	r.load(3, "team")
	r.healthy(fullness...)
	r.load(21, "team")
	r.red("Which engine has a queue of its own?", "endpoint", r.engines[0].Address())
	r.alarmed()
}

// Requests bypass Weir if Envoy lacks the picked engine, if another picker has decided before, or without a Weir.
func TestIsAnythingPassingWeirBy(t *testing.T) {
	t.Parallel()
	r := start(t, setup{name: "past"})
	r.load(2, "team")
	r.healthy(fullness...)

	const question = "Is anything passing Weir by?"
	r.loadAt(r.envoy(r.addresses()[:1], nil), 2, "team")
	r.red(question, "endpoint", r.engines[1].Address())
	r.loadAt(r.envoy(r.addresses(), twice), 2, "team")
	r.becomesRed(question, "query", "C")
	if err := r.epp.Kill(); err != nil {
		t.Fatal(err)
	}
	r.becomesRed(question, "pod", "envoy-0")
	r.alarmed("WeirBypassed", "WeirDown", "WeirPlacedBefore", "WeirServedElsewhere")
}

// twice sends each request through two filters to Weir.
func twice(b envoyrun.Bootstrap) error {
	manager := b.ConnectionManager()
	filters := envoyrun.List(manager, "http_filters")
	at := slices.IndexFunc(filters, func(f any) bool { return envoyrun.Object(f)["name"] == envoyrun.ExtProcFilter })
	second := maps.Clone(envoyrun.Object(filters[at]))
	second["name"] = "a.second.one"
	manager["http_filters"] = slices.Insert(filters, at+1, any(second))
	return nil
}

// A flow held back by its own cap does not get its weight's share.
func TestIsAWeightNotKept(t *testing.T) {
	t.Parallel()
	weights := func(inFlight string) string {
		return bounded("4") + "roles: { paying: { weight: 3, maxInFlight: " + inFlight + " }, other: { weight: 1 } }\n" +
			"flows: { defaultRole: other }\ntenantPolicies: { gold: { role: paying } }\n"
	}
	r := start(t, setup{name: "weights", engines: two(slots(4, 200*time.Millisecond)), config: weights("0")})
	r.load(9, "gold")
	r.load(9, "silver")
	r.scrapes(scrapesBefore) // until its beginning counts for little
	settled := time.Now()
	r.scrapes(2 * scrapesBefore)
	const question = "Is a weight not kept?"
	r.green(panelOf(t, question), settled, time.Now(), true)
	r.epp.configure(t, weights("1"))
	r.red(question, "flow", "gold")
	r.alarmed()
}

// A tier without a threshold, below another with constant work, is starved.
func TestIsATierStarved(t *testing.T) {
	t.Parallel()
	r := start(t, setup{
		name: "tiers", engines: two(slots(2, 200*time.Millisecond)),
		config: bounded("2") + "replaceTiers: true\ntiers: [ { name: high, minPriority: 1 }, { name: low } ]\n" +
			"criticality: { header: x-class, default: low }\n",
	})
	r.load(2, "batch")
	r.healthy(fullness...)
	r.load(12, "chat", "x-class", "high")
	r.red("Is a tier starved?", "tier", "low")
	r.alarmed()
}
