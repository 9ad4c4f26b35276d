package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Tenants inside a class are fair (parity: dynamo 8, point 6). A quiet tenant arrives behind 20 requests of a noisy
// one, and has five of the class's first ten. The noisy one's strict priority orders only its own requests. The classes
// keep their quanta: 20 of the first 25 are of the class with 512, 5 of that with 128.
func TestTenantsInsideAClassAreFair(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), edit: unhurried, config: `profile: dynamo-drr
flows: { key: ["header:x-tenant"], discipline: vtc }
classes: [ { name: gold, quantum: 512 }, { name: iron, quantum: 128 } ]
trustedHeaders: { cost: x-cost }
fairRequestQueue: { queueTTL: 1h }
` + single})
	plug := s.begin(inClass("gold", "plug", 512))
	s.epp.waitFor(1, "weir_stock_level")
	var waiting []*pending
	comes := func(n int, a ask) {
		for range n {
			waiting = append(waiting, s.begin(a))
		}
		s.epp.waitFor(float64(len(waiting)), "weir_queue_length")
	}
	comes(20, inClass("gold", "noisy", 512, "x-dynamo-request-strict-priority", "9"))
	comes(15, inClass("iron", "iron", 512))
	comes(5, inClass("gold", "quiet", 512))
	v.open()
	wantServed(t, "the plug", plug.wait())
	for _, p := range waiting {
		wantServed(t, "a request", p.wait())
	}
	s.epp.settled()
	quiet, gold := 0, 0
	for i, tenant := range tenants(s.models[0])[1:] {
		if tenant != "iron" {
			gold++
		}
		if tenant == "quiet" {
			quiet++
		}
		if gold == 10 && tenant != "iron" && quiet != 5 {
			t.Errorf("%d of the first ten of the class are the quiet tenant's, want 5", quiet)
		}
		if i == 24 && (gold < 19 || gold > 21) {
			t.Errorf("%d of the first 25 are of gold, want 20", gold)
		}
	}
	if quiet != 5 || gold != 25 {
		t.Errorf("%d of gold were served, %d the quiet tenant's", gold, quiet)
	}
}

// With osl among the hints, an answer is estimated at the length stated in its body (parity: dynamo 3), up to
// max_tokens. A prompt of 100 tokens costs 400 with 300, 150 with 300 of which 50 are allowed, and 1,100 without a
// statement or with hints ignored. The usage corrects it: 130 become 150.
func TestOutputHintOnTheWire(t *testing.T) {
	t.Parallel()
	const head = "profile: dynamo-drr\nclasses: [ { name: all, quantum: 100000 } ]\nusage: auto\ntokens: { weights: { output: 1 } }\n" +
		"trustedHeaders: { inputTokens: x-tokens }\nrequestQueueController: { slotsPerBackend: 1 }\n"
	file := newConfigFile(t, head+"policyClass: { hints: [osl] }\n")
	s := start(t, setup{flags: []string{"--config-file=" + file.path}})
	asked := 0
	want := func(rest string, charged, actual float64) {
		t.Helper()
		asked++ // no prompt is cached
		before, used := s.epp.value("weir_flow_served_cost_total"), s.epp.value("weir_flow_actual_cost_total")
		wantServed(t, rest, s.send(ask{
			header: []string{"x-tokens", "100"}, path: "/v1/completions",
			body: fmt.Sprintf(`{"model":"tiny","prompt":"%d",%s}`, asked, rest),
		}))
		s.epp.settled()
		if got := s.epp.value("weir_flow_served_cost_total") - before; got != charged {
			t.Errorf("%s: costs %v, want %v", rest, got, charged)
		}
		if got := s.epp.value("weir_flow_actual_cost_total") - used; actual > 0 && got != actual {
			t.Errorf("%s: has cost %v, want %v", rest, got, actual)
		}
	}
	const osl = `"nvext":{"agent_hints":{"osl":%d}}`
	want(`"n":1`, 1100, 0)
	want(fmt.Sprintf(osl, 300), 400, 0)
	want(`"max_tokens":50,`+fmt.Sprintf(osl, 300), 150, 0)
	want(`"max_tokens":50,`+fmt.Sprintf(osl, 30), 130, 150)
	file.write(head + "policyClass: { hints: [] }\n")
	s.epp.reloaded(1, 0, 1)
	want(fmt.Sprintf(osl, 300), 1100, 0)
}

// With priorities capped at 0, no request goes before earlier ones of its class, whether it states a priority in
// headers or in its body.
func TestPrioritiesAreCapped(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: "profile: dynamo-drr\npolicyClass: { maxPriority: 0, maxStrictPriority: 0 }\n" + single})
	inBody, inHeaders := from("body"), from("headers")
	inBody.body = strings.TrimSuffix(chat("tiny", false), "}") + `,"nvext":{"agent_hints":{"priority":2147483647,"strict_priority":8191}}}`
	inHeaders.header = append(inHeaders.header, "x-dynamo-request-priority", "2147483647", "x-dynamo-request-strict-priority", "8191")
	waiting := []*pending{s.begin(from("plug"))}
	s.epp.waitFor(1, "weir_stock_level")
	for i, a := range []ask{from("first"), inBody, inHeaders, from("last")} {
		waiting = append(waiting, s.begin(a))
		s.epp.waitFor(float64(i+1), "weir_queue_length")
	}
	v.open()
	for _, p := range waiting {
		wantServed(t, "a request", p.wait())
	}
	if got, want := tenants(s.models[0]), []string{"plug", "first", "body", "headers", "last"}; !slices.Equal(got, want) {
		t.Errorf("served in the order %v, want %v", got, want)
	}
}
