package extproc

import (
	"testing"

	"github.com/weir-epp/weir/pkg/request"
)

// smgLike sets the values that the profile smg-priority changes in this package.
func smgLike(c *Config) {
	one, zero, two := 1, 0, 2
	c.FlowKey = []string{"header:x-tenant", "model"}
	c.Tiers = []request.Tier{
		{Name: "system", MinPriority: &two}, {Name: "interactive", MinPriority: &one}, {Name: "default", MinPriority: &zero}, {Name: "bulk"},
	}
	c.Criticality = request.Criticality{Header: "x-smg-priority", Default: "Standard"}
	c.TenantPolicies = map[string]request.TenantPolicy{"*": {MaxClass: "default"}, "vip": {MaxClass: "system"}, "chat": {MaxClass: "interactive"}}
	c.Responses.Preset = "smg"
}

// Weir counts a tier that does not exist, and one lowered by the tenant's policy.
func TestTiersNotGivenAreCounted(t *testing.T) {
	for _, test := range []struct {
		name, tenant, class string
		unknown, clamped    int
	}{
		{"given", "vip", "system", 0, 0},
		{"unknown", "vip", "urgent", 1, 0},
		{"clamped", "chat", "system", 0, 1},
		{"never up", "chat", "bulk", 0, 0},
	} {
		inBubble(t, "NONE/NONE", smgLike, func(c *conversation) {
			c.say(chat("x-smg-priority", test.class, "x-tenant", test.tenant))
			c.heard()
			unknown, clamped := c.counted("weir_priority_unknown_total"), c.counted("weir_priority_clamps_total")
			if unknown != test.unknown || clamped != test.clamped {
				t.Errorf("%s: %d unknown, %d clamped", test.name, unknown, clamped)
			}
			if test.clamped > 0 && c.metric("weir_priority_clamps_total/interactive") != 1 {
				t.Errorf("%s: clamped otherwise", test.name)
			}
		})
	}
}
