package request

import (
	"strconv"
	"strings"
	"testing"
)

// campus has three roles, by a claim or by a header that the gateway sets.
func campus(c *Config) {
	c.FlowKey = []string{"header:x-tenant", "model"}
	c.RoleSources, c.DefaultRole = []string{"metadata:jwt/role", "header:x-role"}, "student"
	c.Roles = map[string]RoleTiers{"student": {MaxClass: "sheddable"}, "staff": {}, "faculty": {Class: "critical"}}
	c.Criticality.Default = "Standard"
	c.TenantPolicies = map[string]TenantPolicy{
		"dean": {Role: "faculty"}, "anonymous": {Role: "staff"}, "tom": {Role: "student", MaxClass: "critical"},
		"*": {MaxClass: "default"},
	}
}

// The first of these that names a role counts: the tenant's policy, the sources in order, the default. An unknown role
// counts as none. The role goes to the queue, and its tiers apply to tenants without tiers in their policy.
func TestRole(t *testing.T) {
	for _, test := range []struct {
		name    string
		pass    []string
		claim   string
		want    string
		tier    int
		unknown bool
	}{
		{"nobody says", []string{"x-tenant", "sue"}, "", "student", 2, false},
		{"a claim", []string{"x-tenant", "ann"}, "faculty", "faculty", 0, false},
		{"the claim goes before the header", []string{"x-tenant", "ann", "x-role", "staff"}, "faculty", "faculty", 0, false},
		{"a header", []string{"x-tenant", "ann", "x-role", "staff"}, "", "staff", 1, false},
		{"an unknown one", []string{"x-tenant", "ann", "x-role", "king"}, "", "student", 2, true},
		{"names are exact", []string{"x-tenant", "ann"}, "Faculty", "student", 2, true},
		{"the tenant's policy goes before", []string{"x-tenant", "dean"}, "student", "faculty", 0, false},
		{"a policy with tiers keeps them", []string{"x-tenant", "tom"}, "", "student", 1, false},
		{"without a tenant", nil, "", "staff", 1, false},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat(test.pass...), context: told{"jwt/role": test.claim}}
		campus(&s.cfg)
		q := s.must(t)
		if q.Role != test.want || q.Tier != test.tier || q.UnknownRole != test.unknown || q.Class == nil || q.Class.Role != test.want {
			t.Errorf("%s: role %q, tier %d, unknown %v, path %+v", test.name, q.Role, q.Tier, q.UnknownRole, q.Class)
		}
	}
}

// A request with two headers that name its role is refused: one may be the client's own.
func TestTwoRolesAreRefused(t *testing.T) {
	s := sent{cfg: DefaultConfig(), headers: chat("x-role", "student", "x-role", "faculty")}
	campus(&s.cfg)
	if _, err := s.read(); err == nil || !strings.Contains(err.Error(), `"x-role"`) {
		t.Errorf("got %v", err)
	}
}

// Without roles no header is read for one, and nothing is passed to the queue.
func TestNoRoles(t *testing.T) {
	s := sent{cfg: DefaultConfig(), headers: chat("x-role", "faculty", "x-role", "faculty")}
	if q := s.must(t); q.Role != "" || q.Class != nil {
		t.Errorf("role %q, path %+v", q.Role, q.Class)
	}
}

// A request has a place for each header of the largest valid configuration. One more header in the flow's key and the
// sources of roles together is refused.
func TestEveryHeaderHasAPlace(t *testing.T) {
	s := sent{cfg: DefaultConfig()}
	c := &s.cfg
	names := func(prefix string, n int) (list []string) {
		for i := range n {
			list = append(list, prefix+strconv.Itoa(i))
		}
		return list
	}
	c.FlowKey, c.RoleSources = names("header:x-flow-", 10), names("header:x-role-", 6)
	c.RoleSources = append(c.RoleSources, c.FlowKey[0]) // one header, once more
	c.DeadlineHeaders = names("x-deadline-", maxDeadlineHeaders)
	c.Criticality.ObjectiveHeaders, c.Criticality.Header = names("x-objective-", maxObjectiveHeaders), "x-tier"
	c.PolicyClass.Headers = names("x-class-", maxClassHeaders)
	c.PolicyClass.PriorityHeader, c.PolicyClass.StrictPriorityHeader = "x-priority", "x-strict"
	c.TrustedHeaders = TrustedHeaders{Model: "x-model", Cost: "x-cost", InputTokens: "x-input", Requirements: "x-requirements"}
	c.Affinity.Mode, c.Affinity.Session = AffinitySession, "header:x-session"
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s.headers = chat("x-role-5", "none", "x-session", "s", "x-flow-9", "ann")
	if q := s.must(t); q.Flow != "ann" {
		t.Errorf("flow %q, want the tenant's", q.Flow)
	}
	c.RoleSources = append(c.RoleSources, "header:x-role-6")
	if err := c.Validate(); err == nil || err.Error() != "RoleSources: 17 headers: must be at most 16, together with those of FlowKey" {
		t.Errorf("got %v", err)
	}
}
