package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// 12 dispatch orders recorded from Dynamo's service 1.6.1 come out exactly through Envoy, with that version's cursor.
// All requests wait behind one busy worker, after a first request of the first class that went through the queue alone.
// Each order has its own ring, by a reload.
func TestDynamoOrdersOnTheWire(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "pkg", "fairqueue", "testdata", "dynamo-orders"))
	if err != nil {
		t.Fatal(err)
	}
	const head = "profile: dynamo-drr\nfairRequestQueue: { cursor: advance }\ntrustedHeaders: { cost: x-cost }\n" + single
	file := newConfigFile(t, head)
	v := newValve()
	s := start(t, setup{models: v.one(), flags: []string{"--config-file=" + file.path}})
	played := 0
	for scene := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(scene, "#") {
			continue
		}
		played++
		var classes, yaml, pushed, want []string
		for line := range strings.Lines(scene) {
			words := strings.Fields(line)
			switch words[0] {
			case "ring":
				for _, w := range words[1:] {
					f := strings.Split(w, ":")
					name := fmt.Sprintf("s%d-%s", played, f[0]) // a ring of new classes begins with its first
					classes = append(classes, name)
					yaml = append(yaml, fmt.Sprintf("{ name: %s, quantum: %s, order: %s }", name, f[1], f[2]))
				}
			case "pushed":
				pushed = append(pushed, words[1:]...)
			case "popped":
				want = append(want, words[1:]...)
			}
		}
		file.write(head + "classes: [ " + strings.Join(yaml, ", ") + " ]\n")
		s.epp.reloaded(played, 0, 1)
		before := len(tenants(s.models[0]))
		s.begin(inClass(classes[0], "plug", 1))
		s.epp.waitFor(1, "weir_stock_level")
		s.begin(inClass(classes[0], "alone", 1))
		s.epp.waitFor(1, "weir_queue_length")
		v.pass(1)
		s.epp.waitFor(0, "weir_queue_length")
		for i, p := range pushed {
			class, cost, _ := strings.Cut(p, ":")
			place, _ := strconv.Atoi(class)
			tokens, _ := strconv.Atoi(cost)
			s.begin(inClass(classes[place], strconv.Itoa(i), tokens))
			s.epp.waitFor(float64(i+1), "weir_queue_length")
		}
		v.pass(1 + len(pushed))
		s.epp.settled()
		if got := tenants(s.models[0])[before+2:]; !slices.Equal(got, want) {
			t.Errorf("order %d\ngot  %v\nwant %v", played, got, want)
		}
	}
	if played != 12 {
		t.Errorf("%d orders, want 12", played)
	}
}

// With quanta of 512 and 128, half as many requests of 512 tokens of each class as in the golden run, and 4 slots, at
// least 120 of the first 160 are of the first class. When its last has gone, 110 to 130 of the second are left. The
// core has the golden run itself, of 320 each (TestDRRLongRun).
func TestDynamoLongRunOnTheWire(t *testing.T) {
	t.Parallel()
	const each, slots = 160, 4
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(slots))}, config: strings.Replace(twoClasses, ", order: wspt", "", 1) +
		"fairRequestQueue: { queueTTL: 1h }\n", edit: unhurried})
	s.begin(inClass("gold", "plug", 512))
	s.epp.waitFor(1, "weir_stock_level")
	for range each {
		s.begin(inClass("gold", "gold", 512))
		s.begin(inClass("iron", "iron", 512))
	}
	s.epp.waitFor(2*each, "weir_queue_length")
	v.open()
	s.epp.settled()
	gold, iron := 0, 0
	for i, class := range tenants(s.models[0])[1:] {
		if class == "gold" {
			gold++
		} else {
			iron++
		}
		if i+1 == each && gold < 120 {
			t.Errorf("%d of the first %d are of gold", gold, each)
		}
		if class == "gold" && gold == each && (each-iron < 110 || each-iron > 130) {
			t.Errorf("%d of iron are left when gold ends", each-iron)
		}
	}
	if gold != each || iron != each {
		t.Errorf("%d and %d were served", gold, iron)
	}
}

// A request costs the prompt tokens that no usable engine has cached at its arrival, at least 1. 1,024 tokens cost 64
// if the best engine has 60 blocks of 16, 1,008 if pinned to an engine with one block, and 1,024 if pinned to one with
// none. A fully cached prompt costs 1. In a class with order wspt the cheapest goes first.
func TestUncachedCostsOnTheWire(t *testing.T) {
	t.Parallel()
	const blocks, bytes = 64, 1 << 10 // of 16 tokens each, by the counted length
	prompt := func(common int, own string) string {
		text := strings.Repeat("shared ", common*bytes/7+1)[:common*bytes]
		return text + strings.Repeat(own+" ", (blocks-common)*bytes/(len(own)+1)+1)[:(blocks-common)*bytes]
	}
	v := newValve()
	held := v.on(recorded(1))
	s := start(t, setup{
		models: []modelsim.Config{held, recorded(1), recorded(1)},
		edit: envoyrun.Edits(unhurried, func(b envoyrun.Bootstrap) error {
			metadataFromHeader(b, "x-test-subset", "envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset")
			return nil
		}),
		config: "profile: dynamo-drr\nclasses: [ { name: all, quantum: 100000, order: wspt } ]\ntrustedHeaders: { inputTokens: x-tokens }\n" +
			"requestQueueController: { slotsPerBackend: 1 }\n",
	})
	ask := func(tag, text string, at int) ask {
		a := ask{header: []string{"x-tenant", tag, "x-tokens", "1024"}, body: fmt.Sprintf(`{"model":"tiny","prompt":%q,"max_tokens":1}`, text), path: "/v1/completions"}
		if at >= 0 {
			a.header = append(a.header, "x-test-subset", inMetadata(t, s.models[at].Address()))
		}
		return a
	}
	cost := func(a func()) float64 {
		before := s.epp.value("weir_flow_served_cost_total")
		a()
		s.epp.settled()
		return s.epp.value("weir_flow_served_cost_total") - before
	}
	serve := func(tag, text string, at int) float64 {
		return cost(func() {
			p := s.begin(ask(tag, text, at))
			if at == 0 {
				v.pass(1)
			}
			wantServed(t, tag, p.wait())
		})
	}
	if got := serve("first", prompt(blocks, "x"), 0); got != 1024 {
		t.Errorf("an uncached prompt costs %v", got)
	}
	if got := serve("one block", prompt(1, "one"), 1); got != 1024 {
		t.Errorf("pinned to an engine without it: %v", got)
	}
	if got := serve("pinned to one block", prompt(blocks, "x"), 1); got != 1008 {
		t.Errorf("pinned to an engine with one block: %v", got)
	}
	if got := serve("pinned to none", prompt(60, "none"), 2); got != 1024 {
		t.Errorf("pinned to an engine without overlap: %v", got)
	}
	plug := s.begin(ask("plug", prompt(0, "plug"), 0))
	s.epp.waitFor(1, "weir_stock_level")
	for i, r := range []struct {
		tag    string
		common int
	}{{"none of it", 0}, {"60 blocks", 60}, {"62 blocks", 62}, {"61 blocks", 61}} {
		s.begin(ask(r.tag, prompt(r.common, fmt.Sprint("tail", i)), 0))
		s.epp.waitFor(float64(i+1), "weir_queue_length")
	}
	first := len(tenants(s.models[0]))
	v.open()
	wantServed(t, "plug", plug.wait())
	s.epp.settled()
	if got := strings.Join(tenants(s.models[0])[first:], ", "); got != "62 blocks, 61 blocks, 60 blocks, none of it" {
		t.Errorf("order %s", got)
	}
}

// A class limited to one request for each backend has room for two with two backends. The next one is answered 529,
// with the body of Dynamo's selection service and a Retry-After. Another class is not affected, and a client that
// disconnects frees its place at once.
func TestClassLimitOnTheWire(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{
		models: []modelsim.Config{v.on(recorded(1)), v.on(recorded(1))}, edit: unhurried,
		config: `profile: dynamo-drr
classes: [ { name: std, quantum: 10, queueLimitPerBackend: 1 }, { name: other, quantum: 10 } ]
trustedHeaders: { cost: x-cost }
requestQueueController: { slotsPerBackend: 1 }
`,
	})
	s.begin(inClass("std", "plug", 1))
	s.begin(inClass("std", "plug", 1))
	s.epp.waitFor(2, "weir_stock_level")
	s.begin(inClass("std", "waits", 1))
	s.epp.waitFor(1, "weir_queue_length")
	leaves := s.begin(inClass("std", "leaves", 1))
	s.epp.waitFor(2, "weir_queue_length")
	got := s.send(inClass("std", "late", 1))
	var body struct {
		Error   string         `json:"error"`
		Details map[string]any `json:"details"`
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Errorf("%s: %v", got.body, err)
	}
	want := `router policy class "std" queue requests limit reached (current=2, limit=2)`
	if d := body.Details; got.status != 529 || got.reason() != "queue-full" || got.header.Get("Retry-After") == "" || body.Error != want ||
		d["policy_class"] != "std" || d["limit_kind"] != "requests" || d["current"] != 2.0 || d["limit"] != 2.0 {
		t.Errorf("beyond the limit: %d %q %s", got.status, got.reason(), got.body)
	}
	s.begin(inClass("other", "other", 1))
	s.epp.waitFor(3, "weir_queue_length")
	leaves.cancel()
	s.epp.waitFor(2, "weir_queue_length")
	s.begin(inClass("std", "has its place", 1))
	s.epp.waitFor(3, "weir_queue_length")
	if n := s.epp.value("weir_class_queue_length", "class", "std"); n != 2 {
		t.Errorf("%v wait in the class", n)
	}
	if n := s.epp.value("weir_class_backpressure_total", "class", "std", "reason", "requests"); n != 1 {
		t.Errorf("%v rejections by the limit", n)
	}
	v.open()
	s.epp.settled()
}

// A request goes to an endpoint with its required labels and without a taint that it does not tolerate. Without such an
// endpoint it is answered at once, and does not wait. The header does not reach the engine.
func TestRequirementsOnTheWire(t *testing.T) {
	t.Parallel()
	s := start(t, setup{models: []modelsim.Config{recorded(4), recorded(4)}, file: true, config: "trustedHeaders: { requirements: x-needs }\n"})
	s.listEndpoints(fmt.Sprintf("{ address: %q, labels: { zone: a }, taints: [old] }", s.models[0].Address()),
		fmt.Sprintf("{ address: %q, labels: { zone: b } }", s.models[1].Address()))
	expect.True(t, "the endpoints have their labels", func() bool { return s.send(ask{header: []string{"x-tenant", "t", "x-needs", "zone=b"}}).status == 200 })
	for _, c := range []struct {
		needs  string
		status int
		old    int // how many of them the tainted endpoint gets
	}{{"", 200, 0}, {"zone=b", 200, 0}, {"zone=a,~old", 200, 4}, {"zone=a", 503, 0}, {"zone=c,~old", 503, 0}, {"zone", 400, 0}} {
		before := len(tenants(s.models[0]))
		for range 4 {
			a := from("t")
			if c.needs != "" {
				a.header = append(a.header, "x-needs", c.needs)
			}
			if got := s.send(a); got.status != c.status || c.status == 503 && got.reason() != "no-endpoint" {
				t.Errorf("%q: %d %q", c.needs, got.status, got.reason())
			}
		}
		if n := len(tenants(s.models[0])) - before; n != c.old {
			t.Errorf("%q: %d at the tainted endpoint, want %d", c.needs, n, c.old)
		}
	}
	s.epp.settled()
}

// A class with any unread prompt as its limit and without a queue sheds: while an engine works on one of its requests,
// the next one is answered 529 at once, and the one after the answer's end is served. Another class is not affected.
func TestPureSheddingOnTheWire(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(8))}, config: `profile: dynamo-drr
classes: [ { name: std, quantum: 10, busyTokens: 0, queueLimitPerBackend: 0 }, { name: other, quantum: 10 } ]
requestQueueController: { slotsPerBackend: 8 }
`})
	long := func(class, tag string) ask {
		a := promptOf(class, tag, 100)
		a.body = strings.Replace(a.body, `"m"`, `"tiny"`, 1)
		return a
	}
	for range 2 {
		before := s.epp.value("weir_stock_level")
		first := s.begin(long("std", "first"))
		s.epp.waitFor(before+1, "weir_stock_level")
		shed := s.send(long("std", "shed"))
		if want := `router policy class \"std\" queue requests limit reached (current=0, limit=0)`; shed.status != 529 || !strings.Contains(shed.body, want) {
			t.Errorf("beside a prompt that is being read: %d %s", shed.status, shed.body)
		}
		other := s.begin(long("other", "other"))
		s.epp.waitFor(before+2, "weir_stock_level")
		v.pass(2)
		wantServed(t, "the first", first.wait())
		wantServed(t, "the other class's", other.wait())
		s.epp.settled()
	}
}
