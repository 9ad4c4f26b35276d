package request

import "testing"

// The first of these that names a tier counts: trusted metadata, class header, objective, model, the tenant's class,
// default. Then the tenant's highest tier limits it. Rank 0 is critical, 1 default, 2 sheddable.
func TestTier(t *testing.T) {
	change := func(c *Config) {
		c.FlowKey = []string{"header:x-tenant", "model"}
		c.Models = []Model{{Name: "cheap", Criticality: "Sheddable"}, {Name: "plain"}}
		c.Objectives = []Objective{{Name: "batch", Priority: -1}, {Name: "mid", Priority: 0}, {Name: "top", Priority: 9}}
		c.Criticality = Criticality{
			Header: "X-Class", Metadata: "auth/class", Default: "Standard", ObjectiveHeaders: []string{"x-llm-d-inference-objective"},
		}
		c.TenantPolicies = map[string]TenantPolicy{
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
		s := sent{cfg: DefaultConfig(), headers: chat(test.pass...), context: told{"auth/class": test.metadata}}
		change(&s.cfg)
		if got := s.must(t).Tier; got != test.want {
			t.Errorf("%s: tier %d, want %d", test.name, got, test.want)
		}
	}
}

// smgLike sets what the profile smg-priority changes in this package.
func smgLike(c *Config) {
	one, zero, two := 1, 0, 2
	c.FlowKey = []string{"header:x-tenant", "model"}
	c.Tiers = []Tier{
		{Name: "system", MinPriority: &two}, {Name: "interactive", MinPriority: &one}, {Name: "default", MinPriority: &zero}, {Name: "bulk"},
	}
	c.Criticality = Criticality{Header: "x-smg-priority", Default: "Standard"}
	c.TenantPolicies = map[string]TenantPolicy{"*": {MaxClass: "default"}, "vip": {MaxClass: "system"}, "chat": {MaxClass: "interactive"}}
}

// SMG's contract of x-smg-priority: the first value, whatever its case and blanks; missing, empty or unknown is default
// and never an error; unknown is counted when it is there, not empty and not recognised; the tenant's class clamps
// down, never up, and is counted.
func TestSMGPriority(t *testing.T) {
	const system, interactive, standard, bulk = 0, 1, 2, 3
	tests := []struct {
		name    string
		tenant  string
		values  []string
		want    int
		unknown int
		clamp   string // requested/effective
	}{
		{"missing", "vip", nil, standard, 0, ""},
		{"empty", "vip", []string{""}, standard, 0, ""},
		{"blank", "vip", []string{" \t"}, standard, 0, ""},
		{"system", "vip", []string{"system"}, system, 0, ""},
		{"case and blanks", "vip", []string{"  InterActive "}, interactive, 0, ""},
		{"bulk", "vip", []string{"bulk"}, bulk, 0, ""},
		{"the first counts", "vip", []string{"bulk", "system"}, bulk, 0, ""},
		{"an empty first one counts too", "vip", []string{"", "system"}, standard, 0, ""},
		{"unknown", "vip", []string{"urgent"}, standard, 1, ""},
		{"a list is no class", "vip", []string{"bulk,system"}, standard, 1, ""},
		{"a criticality is no class", "vip", []string{"critical"}, standard, 1, ""},
		{"clamped by its policy", "chat", []string{"system"}, interactive, 0, "system/interactive"},
		{"at its highest", "chat", []string{"interactive"}, interactive, 0, ""},
		{"below it: never up", "chat", []string{"bulk"}, bulk, 0, ""},
		{"no policy", "other", []string{"interactive"}, standard, 0, "interactive/default"},
		{"anonymous", "", []string{"system"}, standard, 0, "system/default"},
	}
	for _, test := range tests {
		pass := chat()
		for _, v := range test.values {
			pass = append(pass, "x-smg-priority", v)
		}
		if test.tenant != "" {
			pass = append(pass, "x-tenant", test.tenant)
		}
		s := sent{cfg: DefaultConfig(), headers: pass}
		smgLike(&s.cfg)
		q := s.must(t)
		clamp := ""
		if q.AskedTier != q.Tier {
			clamp = s.cfg.Tiers[q.AskedTier].Name + "/" + s.cfg.Tiers[q.Tier].Name
		}
		if q.Tier != test.want || q.UnknownTier != (test.unknown > 0) || clamp != test.clamp {
			t.Errorf("%s: tier %d, unknown %v, clamped %q", test.name, q.Tier, q.UnknownTier, clamp)
		}
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
