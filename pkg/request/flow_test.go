package request

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

const subject = "envoy.filters.http.jwt_authn/payload/sub"

// The first source that has a value names the flow.
func TestFlowKey(t *testing.T) {
	cfg := DefaultConfig()
	cfg.FlowKey = []string{"header:X-Team", "metadata:" + subject, "attribute:source.principal", "model", "header:x-late"}
	cfg.Models = []Model{{Name: "m", Targets: []Target{{Name: "m-v1", Weight: 1}}}}
	for _, test := range []struct {
		name    string
		headers []string
		context told
		want    string
	}{
		{"header", headers("x-team", "a"), told{subject: "b"}, "a"},
		{"an empty header is none", headers("x-team", ""), told{subject: "b"}, "b"},
		{"attribute", nil, told{"source.principal": "spiffe://c"}, "spiffe://c"},
		{"model", headers("x-gateway-model-name", "m", "x-late", "z"), nil, "m/m-v1"},
		{"a later source, without a model", headers("x-late", "z"), nil, "z"},
		{"nobody", nil, nil, "anonymous"},
	} {
		s := sent{cfg: cfg, headers: chat(test.headers...), context: test.context}
		if got := s.must(t).Flow; got != test.want {
			t.Errorf("%s: flow %q, want %q", test.name, got, test.want)
		}
	}
}

// A header counts only if the configuration names it, and never in place of a synonym. All four are removed.
func TestOnlyNamedSynonymsAreRead(t *testing.T) {
	const newer, older = "x-llm-d-inference-", "x-gateway-inference-"
	all := headers(newer+"fairness-id", "new", older+"fairness-id", "old", newer+"objective", "low", older+"objective", "top")
	for _, test := range []struct {
		name       string
		key        []string
		objectives []string
		flow       string
		tier       int
		unread     int
	}{
		{"none", []string{"model"}, nil, "anonymous", 0, 4},
		{"the newer", []string{"header:" + newer + "fairness-id"}, []string{newer + "objective"}, "new", 2, 2},
		{"the older", []string{"header:" + older + "fairness-id"}, []string{older + "objective"}, "old", 1, 2},
		{
			"both, in this order",
			[]string{"header:" + older + "fairness-id", "header:" + newer + "fairness-id"},
			[]string{older + "objective", newer + "objective"},
			"old", 1, 0,
		},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat(all...)}
		s.cfg.FlowKey, s.cfg.Criticality.ObjectiveHeaders = test.key, test.objectives
		s.cfg.Objectives = []Objective{{Name: "low", Priority: -1}, {Name: "top", Priority: 0}}
		q := s.must(t)
		if q.Flow != test.flow || q.Tier != test.tier {
			t.Errorf("%s: flow %q, tier %d", test.name, q.Flow, q.Tier)
		}
		if unread, removed := q.rules.AppendNames(nil, q.Unread), q.rules.AppendNames(nil, q.Control); len(unread) != test.unread || len(removed) != 4 {
			t.Errorf("%s: %q are not read, and %q removed", test.name, unread, removed)
		}
	}
}

// Requests without an identity have their model's flow, or share one. A tenant called anonymous is different from
// these, and has another policy.
func TestAnonymous(t *testing.T) {
	named := hashedFlow("anonymous")
	for _, test := range []struct {
		name, tenant string
		policy       AnonymousPolicy
		key          []string
		want         string
		tier         int
	}{
		{"nobody", "", AnonymousModel, []string{"header:x-tenant", "model"}, "m/m", 2},
		{"nobody", "", AnonymousShared, []string{"header:x-tenant", "model"}, "anonymous", 2},
		{"nobody, by model first", "", AnonymousShared, []string{"model", "header:x-tenant"}, "anonymous", 2},
		{"a tenant", "a", AnonymousShared, []string{"header:x-tenant", "model"}, "a", 0},
		{"a tenant, by model first", "a", AnonymousShared, []string{"model", "header:x-tenant"}, "m/m", 0},
		{"one of that name", "anonymous", AnonymousShared, []string{"header:x-tenant", "model"}, named, 0},
		{"one of that name", "anonymous", AnonymousModel, []string{"header:x-tenant"}, named, 0},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat("x-tenant", test.tenant, "x-gateway-model-name", "m")}
		s.cfg.FlowKey, s.cfg.Anonymous = test.key, test.policy
		s.cfg.TenantPolicies = map[string]TenantPolicy{"anonymous": {MaxClass: "sheddable"}}
		if q := s.must(t); q.Flow != test.want || q.Tier != test.tier {
			t.Errorf("%s, %s, %q: flow %q in tier %d, want %q in %d", test.name, test.policy, test.key, q.Flow, q.Tier, test.want, test.tier)
		}
	}
}

func toOther(c *Config) { c.OtherTargets = []Target{{Name: "other", Weight: 1}} }

// A tenant with the name of a model's flow is different from it, and keeps its own policy. Without such a flow, and
// with any other name, a tenant is known by its name.
func TestNobodyClaimsAFlowOfModels(t *testing.T) {
	shared := func(c *Config) { c.UnknownModels = UnknownModelsShared }
	own := func(*Config) {}
	configured := func(c *Config) { c.Models = []Model{{Name: "m", Targets: []Target{{Name: "v1", Weight: 1}}}} }
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
			want = hashedFlow(test.tenant)
		}
		s := sent{cfg: DefaultConfig(), headers: chat("x-tenant", test.tenant, "x-gateway-model-name", "m")}
		s.cfg.FlowKey = []string{"header:x-tenant", "model"}
		s.cfg.TenantPolicies = map[string]TenantPolicy{test.tenant: {MaxClass: "sheddable"}}
		test.change(&s.cfg)
		if q := s.must(t); q.Flow != want || q.Tier != 2 {
			t.Errorf("%q: flow %q in tier %d, want %q in 2", test.tenant, q.Flow, q.Tier, want)
		}
	}
}

func hash(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s)))[:7+32] }

// A secret key is hashed as soon as it is read. The tenant's policy still applies, whether the configuration has the key or
// its hash. A model's name is not a secret.
func TestHashedFlowKeys(t *testing.T) {
	const secret, other = "sk-secret-1", "sk-secret-2"
	long := strings.Repeat("long", 100)
	for tenant, want := range map[string]string{
		secret: hash(secret), other: hash(other), "sk-3": hash("sk-3"), long: hash(long),
		"": "m/m", "anonymous": hash("anonymous"), hash(secret): hash(hash(secret)),
	} {
		s := sent{cfg: DefaultConfig(), headers: chat("authorization", tenant, "x-gateway-model-name", "m")}
		s.cfg.HashFlowKeys, s.cfg.FlowKey = true, []string{"header:authorization", "model"}
		s.cfg.TenantPolicies = map[string]TenantPolicy{secret: {MaxClass: "default"}, hash(other): {MaxClass: "sheddable"}}
		q := s.must(t)
		if q.Flow != want {
			t.Errorf("%q: flow %q, want %q", tenant, q.Flow, want)
		}
		if tier := map[string]int{secret: 1, other: 2}[tenant]; q.Tier != tier {
			t.Errorf("%q: tier %d, want %d", tenant, q.Tier, tier)
		}
	}
}

// With hashed keys, the policies "anonymous" and "*" apply as they do without.
func TestHashedFlowKeysAndPolicies(t *testing.T) {
	cfg := DefaultConfig()
	cfg.HashFlowKeys, cfg.FlowKey = true, []string{"header:x-tenant"}
	cfg.TenantPolicies = map[string]TenantPolicy{"a": {MaxClass: "Critical"}, "*": {MaxClass: "default"}, "anonymous": {MaxClass: "sheddable"}}
	for tenant, want := range map[string]int{"a": 0, "b": 1, "": 2} {
		s := sent{cfg: cfg, headers: chat("x-tenant", tenant, "x-gateway-model-name", "m")}
		if q := s.must(t); q.Tier != want {
			t.Errorf("tenant %q: tier %d, want %d", tenant, q.Tier, want)
		}
	}
}

// An identity that is longer than 256 bytes or is not text is known by its hash, at full length.
func TestLongIdentitiesAreHashed(t *testing.T) {
	for tenant, hashed := range map[string]bool{strings.Repeat("a", 256): false, strings.Repeat("a", 257): true, "\xff": true} {
		s := sent{cfg: DefaultConfig(), headers: chat("x-tenant", tenant)}
		s.cfg.FlowKey = []string{"header:x-tenant"}
		want := tenant
		if hashed {
			want = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(tenant)))
		}
		if got := s.must(t).Flow; got != want {
			t.Errorf("%.20q: flow %q, want %q", tenant, got, want)
		}
	}
}

// A flow is its tenant's, or is shared by all requests without a tenant, or for its model.
func TestSharing(t *testing.T) {
	for _, test := range []struct {
		name    string
		key     []string
		headers []string
		want    Sharing
	}{
		{"its own", []string{"header:x-tenant", "model"}, headers("x-tenant", "a"), Owned},
		{"the model's", []string{"header:x-tenant", "model"}, nil, OfModel},
		{"the model's, of all tenants", []string{"model", "header:x-tenant"}, headers("x-tenant", "a"), OfModelAll},
		{"nobody's", []string{"header:x-tenant"}, nil, OfAnonymous},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat(append(test.headers, "x-gateway-model-name", "m")...)}
		s.cfg.FlowKey = test.key
		if got := s.must(t).Sharing(); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// A request that is refused names the flow as far as it was read.
func TestKnownFlow(t *testing.T) {
	for _, test := range []struct {
		name    string
		key     []string
		headers []string
		want    string
	}{
		{"the tenant", []string{"header:x-tenant", "model"}, headers("x-tenant", "a"), "a"},
		{"the model, which is not yet known", []string{"header:x-tenant", "model"}, nil, ""},
		{"the model", []string{"model"}, headers("x-gateway-model-name", "m"), "m/m"},
		{"no source has a value", []string{"header:x-tenant"}, nil, ""},
		{"a later source may still lose to the model", []string{"model", "header:x-tenant"}, headers("x-tenant", "a"), ""},
		{"headers that are refused say nothing", []string{"header:x-tenant"}, headers("x-tenant", "a", "x-tenant", "a"), ""},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat(test.headers...), mode: Buffered, body: "x"}
		s.cfg.FlowKey = test.key
		q, _ := s.read()
		if got := q.KnownFlow(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
