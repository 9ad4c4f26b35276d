package extproc

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/estimate"
)

func TestDefaultConfigIsValid(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

// Every problem is reported at once, each with its field, what it holds and what is wanted.
func TestValidateNamesEveryField(t *testing.T) {
	two := 2
	cfg := Config{
		FlowKey: []string{
			"header:", "metadata:x", "attribute:", "cookie:y", "models", "header:a b", "", "model", "model", "metadata:x/a//b", "attribute:a",
		},
		Models:          []Model{{}, {Name: "m", Criticality: "Vital"}, {Name: "m", Targets: []Target{{Weight: 0}, {Name: "t", Weight: 1_000_001}}}},
		OtherTargets:    []Target{{Name: "t"}},
		Objectives:      []Objective{{}, {Name: "o"}, {Name: "o"}},
		TenantPolicies:  map[string]TenantPolicy{"vip": {MaxClass: "nobility"}, "*": {}},
		Criticality:     Criticality{Header: "a b", Metadata: "x", Default: "none", ObjectiveHeaders: []string{"", "a b", "c", "C", "e"}},
		Tiers:           []Tier{{Name: "one", MinPriority: &two}, {Name: "two"}, {Name: "three", MinPriority: &two}},
		TrustedHeaders:  TrustedHeaders{Model: "a:b", Cost: "ä", InputTokens: "c d"},
		Cost:            "token",
		Tokens:          estimate.Config{Weights: estimate.Weights{Input: 1}, Quantile: 900_000, Window: 64, ColdOutput: 1, ColdRate: 1},
		Usage:           "log",
		RequestBody:     "sometimes",
		PassOn:          "drop",
		PassOnPaths:     []string{"/a?b", "c", "", "/d", "/d"},
		UnknownModels:   "some",
		Anonymous:       "nobody",
		Limits:          Limits{MaxBodyBytes: 5, BodyTimeout: LongestHold + 1},
		Responses:       Responses{Preset: "teapot", Status: map[string]int{"dispatched": 500, "queue-full": 99, "shed": 599, "typo": 500}},
		DeadlineHeaders: []string{"", "x-deadline"},
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	const tiers = "must be one of Critical, Standard, Sheddable, one, two, three"
	const reasons = "must be one of flow-full, queue-full, shed, displaced, ttl-expired, preempted, client-cancelled, " +
		"deadline-exceeded, no-endpoint, draining, bad-request, too-large, body-timeout, no-memory, internal, unknown-model"
	want := []string{
		`FlowKey[0]: "header:": must name the header, as in header:x-tenant`,
		`FlowKey[1]: "x": must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub`,
		`FlowKey[2]: "attribute:": must name the attribute, as in attribute:source.principal`,
		`FlowKey[3]: "cookie:y": must be model, header:NAME, metadata:NAMESPACE/PATH or attribute:NAME`,
		`FlowKey[4]: "models": must be model, header:NAME, metadata:NAMESPACE/PATH or attribute:NAME`,
		`FlowKey[5]: "a b": must be the name of a header`,
		`FlowKey[6]: "": must be given`,
		`FlowKey[8]: "model": must be unique`,
		`FlowKey[9]: "x/a//b": must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub`,
		`Tiers[2].MinPriority: 2: must be below that of the tiers above (2)`,
		`Models[0].Name: "": must be given`,
		`Models[1].Criticality: "Vital": ` + tiers,
		`Models[2].Name: "m": must be unique`,
		`Models[2].Targets[0].Name: "": must be given`,
		`Models[2].Targets[0].Weight: 0: must be from 1 to 1000000`,
		`Models[2].Targets[1].Weight: 1000001: must be from 1 to 1000000`,
		`OtherTargets[0].Weight: 0: must be from 1 to 1000000`,
		`Objectives[0].Name: "": must be given`,
		`Objectives[2].Name: "o": must be unique`,
		`Criticality.Default: "none": ` + tiers,
		`TenantPolicies["*"].MaxClass: "": ` + tiers,
		`TenantPolicies["vip"].MaxClass: "nobility": ` + tiers,
		`Criticality.Header: "a b": must be the name of a header`,
		`Criticality.Metadata: "x": must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub`,
		`Criticality.ObjectiveHeaders: 5 headers: must be at most 4`,
		`Criticality.ObjectiveHeaders[0]: "": must be the name of a header`,
		`Criticality.ObjectiveHeaders[1]: "a b": must be the name of a header`,
		`Criticality.ObjectiveHeaders[3]: "c": must be unique`,
		`TrustedHeaders.Model: "a:b": must be the name of a header`,
		`TrustedHeaders.Cost: "ä": must be the name of a header`,
		`TrustedHeaders.InputTokens: "c d": must be the name of a header`,
		`Cost: "token": must be one of requests, tokens`,
		`Usage: "log": must be one of auto, trailers, body, als, none`,
		`Tokens.StockWeights.Input: 0: must be above 0, since Tokens.StockWeights.Output is 0 too`,
		`Tokens.ColdRatio: 0: must be from 1 to 8`,
		`DeadlineHeaders[0]: "": must be the name of a header`,
		`RequestBody: "sometimes": must be one of auto, always, never`,
		`UnknownModels: "some": must be one of own, shared`,
		`Anonymous: "nobody": must be one of model, shared`,
		`PassOn: "drop": must be one of pick, queue`,
		`PassOnPaths[0]: "/a?b": must be a path as clients send it: from its first slash, without the query`,
		`PassOnPaths[1]: "c": must be a path as clients send it: from its first slash, without the query`,
		`PassOnPaths[2]: "": must be given`,
		`PassOnPaths[4]: "/d": must be unique`,
		`Limits.MaxBodyBytesTotal: 0: must be at least 1`,
		`Limits.BodyTimeout: 1h0m0.000000001s: must be above 0s and at most 1h`,
		`Limits.MaxHeaderBytes: 0: must be at least 1`,
		`Limits.MaxHeaders: 0: must be at least 1`,
		`Responses.Preset: "teapot": must be one of seed, gateway, smg, dynamo`,
		`Responses.Status["dispatched"]: "dispatched": ` + reasons,
		`Responses.Status["queue-full"]: 99: must be a status from 400 to 599`,
		`Responses.Status["typo"]: "typo": ` + reasons,
	}
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("problem %d: got\n%s\nwant\n%s", i, strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
		}
	}
	cfg = DefaultConfig()
	cfg.Tiers, cfg.FlowKey, cfg.Limits.MaxBodyBytes, cfg.DeadlineHeaders = nil, nil, maxBody+1, make([]string, maxDeadlineHeaders+1)
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "FlowKey: []: must name at least one source\n") ||
		!strings.Contains(err.Error(), "Tiers: []: must have at least one tier\n") ||
		!strings.Contains(err.Error(), "DeadlineHeaders: 17 headers: must be at most 16\n") ||
		!strings.Contains(err.Error(), "Limits.MaxBodyBytes: 1073741825: must be at most 1073741824 (1 GiB)") {
		t.Errorf("%v", err)
	}
}

// The highest tier that any tenant may use is that of the policies, the tenants' without one among them.
func TestHighestUsable(t *testing.T) {
	for want, policies := range map[int]map[string]TenantPolicy{
		0: {"a": {MaxClass: "Sheddable"}}, // others are not clamped
		1: {"*": {MaxClass: "sheddable"}, "a": {MaxClass: "default"}, "b": {Class: "default"}, "c": {Class: "critical", MaxClass: "default"}},
		2: {"*": {MaxClass: "Sheddable"}, "a": {MaxClass: "sheddable"}},
	} {
		cfg := DefaultConfig()
		cfg.TenantPolicies = policies
		if got := cfg.HighestUsable(); got != want {
			t.Errorf("%v: %d, want %d", policies, got, want)
		}
	}
}

// An invalid configuration changes nothing. A valid one applies to streams that begin after it.
func TestSetConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.FlowKey = []string{"header:x-a"} })
		before := b.open("NONE/NONE")
		cfg := DefaultConfig()
		cfg.PassOn = "drop"
		if err := b.server.SetConfig(cfg); err == nil {
			t.Error("accepted")
		}
		before.say(chat("x-a", "1", "x-b", "2"))
		before.heard()
		cfg = DefaultConfig()
		cfg.FlowKey = []string{"header:x-b"}
		if err := b.server.SetConfig(cfg); err != nil {
			t.Error(err)
		}
		after := b.open("NONE/NONE")
		after.say(chat("x-a", "1", "x-b", "2"))
		after.heard()
		if f := []string{b.controller.requests[0].Flow, b.controller.requests[1].Flow}; f[0] != "1" || f[1] != "2" {
			t.Errorf("flows %q", f)
		}
		before.end()
		after.settled(2)
	})
}

// The first source that has a value names the flow.
func TestFlowKey(t *testing.T) {
	key := []string{"header:X-Team", "metadata:envoy.filters.http.jwt_authn/payload/sub", "attribute:source.principal", "model", "header:x-late"}
	tests := []struct {
		name string
		pass []string // headers
		sub  string
		attr string
		want string
	}{
		{name: "header", pass: []string{"x-team", "a"}, sub: "b", want: "a"},
		{name: "an empty header is none", pass: []string{"x-team", ""}, sub: "b", want: "b"},
		{name: "attribute", attr: "spiffe://c", want: "spiffe://c"},
		{name: "model", pass: []string{"x-gateway-model-name", "m", "x-late", "z"}, want: "m/m-v1"},
		{name: "a later source, without a model", pass: []string{"x-late", "z"}, want: "z"},
		{name: "nobody", want: "anonymous"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			change := func(c *Config) { rewriteM(c); c.FlowKey = key }
			inBubble(t, "NONE/NONE", change, func(c *conversation) {
				m := chat(test.pass...)
				if test.sub != "" {
					payload, _ := structpb.NewStruct(map[string]any{"sub": test.sub})
					m.MetadataContext = metadataOf("envoy.filters.http.jwt_authn", "payload", structpb.NewStructValue(payload))
				}
				if test.attr != "" {
					m.Attributes = map[string]*structpb.Struct{"envoy.filters.http.ext_proc": {
						Fields: map[string]*structpb.Value{"source.principal": structpb.NewStringValue(test.attr)},
					}}
				}
				c.say(m)
				c.heard()
				if got := c.controller.requests[0].Flow; got != test.want {
					t.Errorf("flow %q, want %q", got, test.want)
				}
			})
		})
	}
}

// A header counts only if the configuration names it, and never in place of a synonym. A synonym that is not named is
// removed, and Weir warns once with the key that may name it.
func TestOnlyNamedSynonymsAreRead(t *testing.T) {
	const newer, older = "x-llm-d-inference-", "x-gateway-inference-"
	all := []string{
		newer + "fairness-id", "new", older + "fairness-id", "old", newer + "objective", "low", older + "objective", "top",
	}
	for _, test := range []struct {
		name       string
		key        []string
		objectives []string
		flow       string
		tier       int
		unread     string
	}{
		{"none", []string{"model"}, nil, "anonymous", 0, "new old low top"},
		{"the newer", []string{"header:" + newer + "fairness-id"}, []string{newer + "objective"}, "new", 2, "old top"},
		{"the older", []string{"header:" + older + "fairness-id"}, []string{older + "objective"}, "old", 1, "new low"},
		{
			"both, in this order",
			[]string{"header:" + older + "fairness-id", "header:" + newer + "fairness-id"},
			[]string{older + "objective", newer + "objective"},
			"old", 1, "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := func(c *Config) {
				c.FlowKey, c.Criticality.ObjectiveHeaders = test.key, test.objectives
				c.Objectives = []Objective{{Name: "low", Priority: -1}, {Name: "top", Priority: 0}}
			}
			inBubble(t, "NONE/NONE", change, func(c *conversation) {
				for range 2 {
					c.say(chat(all...))
				}
				heard := c.heard()
				if r := c.controller.requests[0]; r.Flow != test.flow || r.Tier != test.tier {
					t.Errorf("flow %q, tier %d", r.Flow, r.Tier)
				}
				for i := 0; i < len(all); i += 2 {
					if !strings.Contains(heard+" ", "-"+all[i]+" ") {
						t.Errorf("%s goes on: %s", all[i], heard)
					}
					want := 0
					if strings.Contains(test.unread, all[i+1]) {
						want = 1
					}
					key := "flows.key"
					if strings.HasSuffix(all[i], "objective") {
						key = "criticality.objectiveHeaders"
					}
					if n := c.logged.has("name it in " + key + `" "header"="` + all[i] + `"`); n != want {
						t.Errorf("%s was warned about %d times, want %d: %q", all[i], n, want, c.logged.lines)
					}
				}
			})
		})
	}
}

// The body is read if and only if something in it is needed.
func TestBodyWanted(t *testing.T) {
	fair := func(c *Config) { c.FlowKey, c.RoutesByModel = []string{"header:x-team", "model"}, false }
	with := func(changes ...func(*Config)) func(*Config) {
		return func(c *Config) {
			for _, f := range changes {
				f(c)
			}
		}
	}
	policy := func(p BodyPolicy) func(*Config) { return func(c *Config) { c.RequestBody = p } }
	tests := []struct {
		name   string
		change func(*Config)
		pass   []string
		want   bool
	}{
		{"the flow is the model", nil, nil, true},
		{"the model is in the trusted header", nil, []string{"x-gateway-model-name", "m"}, false},
		{"the flow is in a header, routing needs no model", fair, []string{"x-team", "a"}, false},
		{"the flow's header is missing: by model", fair, nil, true},
		{"routing needs the model", with(fair, func(c *Config) { c.RoutesByModel = true }), []string{"x-team", "a"}, true},
		{"a rewrite needs the body", rewriteM, []string{"x-gateway-model-name", "m"}, true},
		{"a rewrite of all models", with(fair, toOther), []string{"x-team", "a"}, true},
		{"no rewrite of this model", rewriteM, []string{"x-gateway-model-name", "other"}, false},
		{"always", with(fair, policy(BodyAlways)), []string{"x-team", "a"}, true},
		{"never", policy(BodyNever), nil, false},
		{"not JSON", policy(BodyAlways), []string{"content-type", "multipart/form-data"}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "BUFFERED/NONE", test.change, func(c *conversation) {
				pairs := append([]string{":method", "POST", ":path", "/prefix/v1/completions?x=y"}, test.pass...)
				c.say(requestHeaders(false, pairs...))
				if got := !strings.Contains(c.heard(), "override=NONE"); got != test.want {
					t.Errorf("wanted %v, want %v", got, test.want)
				}
			})
		})
	}
}
