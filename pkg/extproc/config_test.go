package extproc

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/request"
)

func TestDefaultConfigIsValid(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

// Every problem is reported at once, each with its field, what it holds and what is wanted; those of reading requests first.
func TestValidateNamesEveryField(t *testing.T) {
	cfg := DefaultConfig()
	cfg.FlowKey = nil
	cfg.Cost, cfg.Usage = "token", "log"
	cfg.Tokens = estimate.Config{Weights: estimate.Weights{Input: 1}, Quantile: 900_000, Window: 64, ColdOutput: 1, ColdRate: 1}
	cfg.Responses = Responses{Preset: "teapot", Status: map[string]int{"dispatched": 500, "queue-full": 99, "shed": 599, "typo": 500}}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	const reasons = "must be one of flow-full, queue-full, shed, displaced, ttl-expired, preempted, client-cancelled, " +
		"deadline-exceeded, no-endpoint, draining, bad-request, too-large, body-timeout, no-memory, internal, unknown-model"
	want := []string{
		`FlowKey: []: must name at least one source`,
		`Cost: "token": must be one of requests, tokens`,
		`Usage: "log": must be one of auto, trailers, body, als, none`,
		`Tokens.StockWeights.Input: 0: must be above 0, since Tokens.StockWeights.Output is 0 too`,
		`Tokens.ColdRatio: 0: must be from 1 to 8`,
		`Responses.Preset: "teapot": must be one of seed, gateway, smg, dynamo`,
		`Responses.Status["dispatched"]: "dispatched": ` + reasons,
		`Responses.Status["queue-full"]: 99: must be a status from 400 to 599`,
		`Responses.Status["typo"]: "typo": ` + reasons,
	}
	if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
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
				c.Objectives = []request.Objective{{Name: "low", Priority: -1}, {Name: "top", Priority: 0}}
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
	policy := func(p request.BodyPolicy) func(*Config) { return func(c *Config) { c.RequestBody = p } }
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
		{"always", with(fair, policy(request.BodyAlways)), []string{"x-team", "a"}, true},
		{"never", policy(request.BodyNever), nil, false},
		{"not JSON", policy(request.BodyAlways), []string{"content-type", "multipart/form-data"}, true},
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
