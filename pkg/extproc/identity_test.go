package extproc

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/request"
)

func containsText(b []byte, text string) bool { return bytes.Contains(b, []byte(text)) }

// Clients can make up names of models. With "shared" all unknown models are one flow and one label. A model that the
// configuration or an endpoint lists is its own flow.
func TestUnknownModelsShareAFlow(t *testing.T) {
	for _, policy := range []request.UnknownModelsPolicy{request.UnknownModelsOwn, request.UnknownModelsShared} {
		for model, known := range map[string]bool{"listed": true, "configured": true, "zz0": false, "configured-v1": false} {
			change := func(c *Config) {
				c.UnknownModels = policy
				c.Models = []request.Model{{Name: "configured", Targets: []request.Target{{Name: "configured-v1", Weight: 1}}}}
			}
			inBubble(t, "BUFFERED/NONE", change, func(c *conversation) {
				c.picker.lists = []string{"listed"}
				c.say(chat())
				c.say(requestBodyOf(`{"model":"`+model+`"}`, true))
				c.heard()
				target := model
				if model == "configured" {
					target = "configured-v1"
				}
				flow, label := model+"/"+target, model
				if policy == request.UnknownModelsShared && !known {
					flow, label, target = "unknown", "unknown", "unknown"
				}
				if r := c.controller.requests[0]; r.Flow != flow || r.Model != label || r.TargetModel != target {
					t.Errorf("%s, %s: flow %q, labels %q, %q", policy, model, r.Flow, r.Model, r.TargetModel)
				}
				if c.picker.model != "configured-v1" && c.picker.model != model {
					t.Errorf("placed as %q: what it is called elsewhere changes nothing", c.picker.model)
				}
			})
		}
	}
}

// Requests without an identity have their model's flow, or share one. A tenant that is called anonymous is somebody else,
// whose policy is not that of those without a name either.
func TestAnonymous(t *testing.T) {
	named := request.HashedFlowName("anonymous")
	for _, test := range []struct {
		name, tenant string
		policy       request.AnonymousPolicy
		key          []string
		want         string
		tier         int
	}{
		{"nobody", "", request.AnonymousModel, []string{"header:x-tenant", "model"}, "m/m", 2},
		{"nobody", "", request.AnonymousShared, []string{"header:x-tenant", "model"}, "anonymous", 2},
		{"nobody, by model first", "", request.AnonymousShared, []string{"model", "header:x-tenant"}, "anonymous", 2},
		{"a tenant", "a", request.AnonymousShared, []string{"header:x-tenant", "model"}, "a", 0},
		{"a tenant, by model first", "a", request.AnonymousShared, []string{"model", "header:x-tenant"}, "m/m", 0},
		{"one of that name", "anonymous", request.AnonymousShared, []string{"header:x-tenant", "model"}, named, 0},
		{"one of that name", "anonymous", request.AnonymousModel, []string{"header:x-tenant"}, named, 0},
	} {
		change := func(c *Config) {
			c.FlowKey, c.Anonymous, c.Criticality.Default = test.key, test.policy, "Critical"
			c.TenantPolicies = map[string]request.TenantPolicy{"anonymous": {MaxClass: "sheddable"}}
		}
		inBubble(t, "NONE/NONE", change, func(c *conversation) {
			c.say(chat("x-tenant", test.tenant, "x-gateway-model-name", "m"))
			c.heard()
			if r := c.controller.requests[0]; r.Flow != test.want || r.Tier != test.tier {
				t.Errorf("%s, %s, %q: flow %q in tier %d, want %q in %d", test.name, test.policy, test.key, r.Flow, r.Tier, test.want, test.tier)
			}
		})
	}
}

// A tenant that is called like a flow of models is somebody else, whose policy stays its own; where there is no such flow,
// and for any other name, a tenant is known by the name that it has.
func TestNobodyClaimsAFlowOfModels(t *testing.T) {
	shared := func(c *Config) { c.UnknownModels = request.UnknownModelsShared }
	own := func(*Config) {}
	configured := func(c *Config) {
		c.Models = []request.Model{{Name: "m", Targets: []request.Target{{Name: "v1", Weight: 1}}}}
	}
	byTenant := func(c *Config) { shared(c); c.FlowKey = []string{"header:x-tenant"} }
	long := strings.Repeat("org/", 40)
	for _, test := range []struct {
		tenant string
		change func(*Config)
		hashed bool
	}{
		{"unknown", shared, true},
		{"unknown", own, false},
		{"unknown", byTenant, false},
		{"m/m", own, true},
		{"org/m/org/m", own, true},
		{"m/m", byTenant, false},
		{"m/v1", configured, true},
		{"m/v1", own, false},
		{"m/v2", configured, false},
		{"anything/other", toOther, true},
		{"another", toOther, false},
		{"org/team", own, false},
		{long + "team", own, false},
		{"/", own, true}, // which no flow has: a model has a name
		{"m/", own, false},
		{"mm", own, false},
	} {
		want := test.tenant
		if test.hashed {
			want = request.HashedFlowName(test.tenant)
		}
		change := func(c *Config) {
			c.FlowKey, c.Criticality.Default = []string{"header:x-tenant", "model"}, "Critical"
			c.TenantPolicies = map[string]request.TenantPolicy{test.tenant: {MaxClass: "sheddable"}}
			test.change(c)
		}
		inBubble(t, "NONE/NONE", change, func(c *conversation) {
			c.say(chat("x-tenant", test.tenant, "x-gateway-model-name", "m"))
			c.heard()
			if r := c.controller.requests[0]; r.Flow != want || r.Tier != 2 {
				t.Errorf("%q: flow %q in tier %d, want %q in 2", test.tenant, r.Flow, r.Tier, want)
			}
		})
	}
}

func toOther(c *Config) { c.OtherTargets = []request.Target{{Name: "other", Weight: 1}} }

// A target for all other models is that of models that are not configured, and makes none of them known.
func TestOtherModelsHaveATarget(t *testing.T) {
	for model, want := range map[string]string{"configured": "configured/configured", "zz0": "unknown", "": "anonymous"} {
		change := func(c *Config) {
			toOther(c)
			c.UnknownModels, c.Models = request.UnknownModelsShared, []request.Model{{Name: "configured"}}
		}
		inBubble(t, "NONE/NONE", change, func(c *conversation) {
			c.say(chat("x-gateway-model-name", model))
			c.heard()
			target := model
			if model == "zz0" {
				target = "other"
			}
			if got := c.controller.requests[0].Flow; got != want || c.picker.model != target {
				t.Errorf("%q: flow %q, placed as %q", model, got, c.picker.model)
			}
		})
	}
}

// Refusals are not labelled with an unknown model's name either. A tenant is its own flow whatever model it asks for.
func TestUnknownModelElsewhere(t *testing.T) {
	change := func(c *Config) {
		c.UnknownModels, c.FlowKey = request.UnknownModelsShared, []string{"header:x-tenant", "model"}
	}
	inBubble(t, "BUFFERED/NONE", change, func(c *conversation) {
		c.picker.err = fmt.Errorf("no endpoint serves it")
		c.say(chat("x-gateway-model-name", "zz1"))
		c.heard()
		if got := c.controller.refusedModels; len(got) != 1 || got[0] != "unknown" {
			t.Errorf("refused %q", got)
		}
	})
	inBubble(t, "BUFFERED/NONE", change, func(c *conversation) {
		c.say(chat("x-gateway-model-name", "zz1", "x-tenant", "a"))
		c.heard()
		if r := c.controller.requests[0]; r.Flow != "a" || r.Model != "unknown" {
			t.Errorf("flow %q, model %q", r.Flow, r.Model)
		}
	})
	// If models name no flows, unknown models do not either.
	byName := func(c *Config) { c.UnknownModels, c.FlowKey = request.UnknownModelsShared, []string{"header:x-tenant"} }
	inBubble(t, "BUFFERED/NONE", byName, func(c *conversation) {
		c.say(chat("x-gateway-model-name", "zz1"))
		c.heard()
		if r := c.controller.requests[0]; r.Flow != "anonymous" {
			t.Errorf("flow %q", r.Flow)
		}
	})
}

// A secret key is hashed as soon as it is read: neither the flow nor any line of the log shows it. The tenant's policy
// still applies, whether the configuration has the key or its hash. A model's name is not a secret.
func TestHashedFlowKeys(t *testing.T) {
	const secret, other = "sk-secret-1", "sk-secret-2"
	hash := func(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s)))[:7+32] }
	for tenant, want := range map[string]string{
		secret: hash(secret), other: hash(other), "sk-3": hash("sk-3"), strings.Repeat("long", 100): hash(strings.Repeat("long", 100)),
		"": "m/m", "anonymous": hash("anonymous"), hash(secret): hash(hash(secret)),
	} {
		change := func(c *Config) {
			c.HashFlowKeys, c.FlowKey = true, []string{"header:authorization", "model"}
			c.Criticality.Default = "Critical"
			c.TenantPolicies = map[string]request.TenantPolicy{secret: {MaxClass: "default"}, hash(other): {MaxClass: "sheddable"}}
		}
		inBubble(t, "NONE/NONE", change, func(c *conversation) {
			c.say(chat("authorization", tenant, "x-gateway-model-name", "m"))
			c.say(responseHeaders("200", true))
			c.heard()
			r := c.controller.requests[0]
			if r.Flow != want {
				t.Errorf("%q: flow %q, want %q", tenant, r.Flow, want)
			}
			if tier := map[string]int{secret: 1, other: 2}[tenant]; r.Tier != tier {
				t.Errorf("%q: tier %d, want %d", tenant, r.Tier, tier)
			}
			if tenant != "" && tenant != "anonymous" && c.logged.has(tenant) > 0 {
				t.Errorf("%q is in the log", tenant)
			}
		})
	}
}

// With hashed keys, the policies "anonymous" and "*" apply as they do without.
func TestHashedFlowKeysAndPolicies(t *testing.T) {
	change := func(c *Config) {
		c.HashFlowKeys, c.FlowKey = true, []string{"header:x-tenant"}
		c.TenantPolicies = map[string]request.TenantPolicy{"a": {MaxClass: "Critical"}, "*": {MaxClass: "default"}, "anonymous": {MaxClass: "sheddable"}}
	}
	for tenant, want := range map[string]int{"a": 0, "b": 1, "": 2} {
		inBubble(t, "NONE/NONE", change, func(c *conversation) {
			c.say(chat("x-tenant", tenant, "x-gateway-model-name", "m"))
			c.heard()
			if r := c.controller.requests[0]; r.Tier != want {
				t.Errorf("tenant %q: tier %d, want %d", tenant, r.Tier, want)
			}
		})
	}
}
