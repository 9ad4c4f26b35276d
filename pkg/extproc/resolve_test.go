package extproc

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/request"
)

// The first of these that names a tier counts: trusted metadata, class header, objective, model, the tenant's class,
// default. Then the tenant's highest tier limits it. Rank 0 is critical, 1 default, 2 sheddable.
func TestTier(t *testing.T) {
	change := func(c *Config) {
		c.FlowKey = []string{"header:x-tenant", "model"}
		c.Models = []request.Model{{Name: "cheap", Criticality: "Sheddable"}, {Name: "plain"}}
		c.Objectives = []request.Objective{{Name: "batch", Priority: -1}, {Name: "mid", Priority: 0}, {Name: "top", Priority: 9}}
		c.Criticality = request.Criticality{
			Header: "X-Class", Metadata: "auth/class", Default: "Standard", ObjectiveHeaders: []string{"x-llm-d-inference-objective"},
		}
		c.TenantPolicies = map[string]request.TenantPolicy{
			"low": {MaxClass: "sheddable"}, "vip": {MaxClass: "critical"}, "*": {MaxClass: "default"},
			"gold": {Class: "critical"}, "bulk": {Class: "Sheddable"}, "capped": {Class: "critical", MaxClass: "sheddable"},
		}
	}
	tests := []struct {
		name     string
		pass     []string
		metadata string
		want     int
	}{
		{"nobody says", nil, "", 1},
		{"metadata, case and blanks do not count", []string{"x-tenant", "vip", "x-class", "sheddable"}, " CRITICAL ", 0},
		{"metadata that names no tier is passed over", []string{"x-class", "sheddable"}, "nonsense", 2},
		{"class header", []string{"x-tenant", "vip", "x-class", "critical", "x-llm-d-inference-objective", "batch"}, "", 0},
		{"a header that names no tier is passed over", []string{"x-class", "wow", "x-llm-d-inference-objective", "batch"}, "", 2},
		{"objective", []string{"x-llm-d-inference-objective", "batch", "x-gateway-model-name", "plain"}, "", 2},
		{"objective above all", []string{"x-tenant", "vip", "x-llm-d-inference-objective", "top"}, "", 0},
		{"an unknown objective says nothing", []string{"x-llm-d-inference-objective", "none", "x-gateway-model-name", "cheap"}, "", 2},
		{"model", []string{"x-gateway-model-name", "cheap"}, "", 2},
		{"a model without criticality", []string{"x-gateway-model-name", "plain"}, "", 1},
		{"clamped down by its policy", []string{"x-tenant", "low", "x-class", "critical"}, "", 2},
		{"clamped as tenants without one are", []string{"x-class", "critical"}, "", 1},
		{"never clamped up", []string{"x-tenant", "vip", "x-class", "sheddable"}, "", 2},
		{"the tenant's class, above what others may use", []string{"x-tenant", "gold"}, "", 0},
		{"the tenant's class comes after the model", []string{"x-tenant", "gold", "x-gateway-model-name", "cheap"}, "", 2},
		{"after the objective", []string{"x-tenant", "gold", "x-llm-d-inference-objective", "mid"}, "", 1},
		{"after the class header", []string{"x-tenant", "gold", "x-class", "default"}, "", 1},
		{"after the metadata", []string{"x-tenant", "gold"}, "sheddable", 2},
		{"the tenant's class, below the default", []string{"x-tenant", "bulk", "x-gateway-model-name", "plain"}, "", 2},
		{"a tenant of low class may ask for what others may", []string{"x-tenant", "bulk", "x-class", "critical"}, "", 1},
		{"the tenant's class is clamped", []string{"x-tenant", "capped"}, "", 2},
		{"a model's name has no tenant's class", []string{"x-gateway-model-name", "gold"}, "", 1},
		{"a model's name is no tenant", []string{"x-gateway-model-name", "vip", "x-class", "critical"}, "", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "NONE/NONE", change, func(c *conversation) {
				m := chat(test.pass...)
				if test.metadata != "" {
					m.MetadataContext = metadataOf("auth", "class", structpb.NewStringValue(test.metadata))
				}
				c.say(m)
				c.heard()
				if got := c.controller.requests[0].Tier; got != test.want {
					t.Errorf("tier %d, want %d", got, test.want)
				}
			})
		})
	}
}

func TestCostFromTrustedHeader(t *testing.T) {
	for value, want := range map[string]int64{"17": 17, "0": 1, "-3": 1, "many": 1, "": 1, "9999999999999": 1 << 30} {
		inBubble(t, "NONE/NONE", func(c *Config) { c.TrustedHeaders.Cost = "x-cost" }, func(c *conversation) {
			c.say(chat("x-cost", value))
			c.heard()
			if got := c.controller.requests[0].Cost; int64(got) != want {
				t.Errorf("%q: cost %d", value, got)
			}
		})
	}
}

// A request at an unknown path queues with the model that is found, if any. The body of an upgrade is not awaited.
func TestUnknownPathsQueue(t *testing.T) {
	for _, test := range []struct{ name, headers, body, flow string }{
		{"a model", ":method POST :path /llm/chat", `{"model":"m"}`, "m/m"},
		{"no model", ":method POST :path /generate", `{"text":"m"}`, "anonymous"},
		{"an odd model", ":method POST :path /generate", `{"model":7}`, "anonymous"},
		{"no JSON", ":method POST :path /generate", `text=m`, "anonymous"},
		{"GET with a body", ":method GET :path /v1/models", `{"model":"m"}`, "m/m"},
	} {
		for _, mode := range []string{"BUFFERED/NONE", "FULL_DUPLEX/NONE"} {
			t.Run(test.name+mode, func(t *testing.T) {
				inBubble(t, mode, nil, func(c *conversation) {
					c.say(requestHeaders(false, strings.Fields(test.headers)...))
					c.heard()
					if len(c.controller.requests) > 0 {
						t.Fatal("offered without its body")
					}
					c.say(requestBodyOf(test.body, true))
					if got := c.heard(); !strings.Contains(got, "+x-gateway-destination-endpoint=") {
						t.Errorf("got %s", got)
					}
					if c.controller.passedOn != 0 || c.controller.requests[0].Flow != test.flow {
						t.Errorf("%d passed on, flow %q", c.controller.passedOn, c.controller.requests[0].Flow)
					}
				})
			})
		}
	}
	inBubble(t, "BUFFERED/NONE", func(c *Config) { c.RequestBody = request.BodyAlways }, func(c *conversation) {
		c.say(requestHeaders(false, ":method", "GET", ":path", "/v1/realtime", "upgrade", "websocket", "connection", "upgrade"))
		if got := c.heard(); got != "headers "+dest+" "+meta+" override=NONE/NONE" || c.controller.passedOn != 0 {
			t.Errorf("got %s, %d passed on", got, c.controller.passedOn)
		}
	})
}
