package extproc

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/request"
)

// smgLike sets what the profile smg-priority changes in this package.
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

// A tier that does not exist, and one that the tenant's policy lowers, are counted.
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

// A preempted request gets SMG's answer, in the shape of the API that was called.
func TestSMGPreempted(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions": `"type":"server_error","code":"scheduler_preempted"`,
		"/v1/completions":      `"type":"server_error","code":"scheduler_preempted"`,
		"/v1/embeddings":       `"type":"server_error","code":"scheduler_preempted"`,
		"/v1/messages":         `{"type":"error","error":{"type":"overloaded_error",`,
	} {
		inBubble(t, "NONE/NONE", smgLike, func(c *conversation) {
			c.controller.preempt = make(chan struct{})
			m := chat()
			m.GetRequestHeaders().GetHeaders().GetHeaders()[1].RawValue = []byte(path)
			c.say(m)
			c.heard()
			close(c.controller.preempt)
			r := c.stream.take()[0].GetImmediateResponse()
			headers := map[string]string{}
			for _, h := range r.GetHeaders().GetSetHeaders() {
				headers[h.GetHeader().GetKey()] = headerValue(h.GetHeader())
			}
			if r.GetStatus().GetCode() != 503 || headers["x-smg-preempted"] != "true" || headers["retry-after"] != "1" {
				t.Errorf("%s: %v %v", path, r.GetStatus(), headers)
			}
			if !strings.Contains(string(r.GetBody()), want) {
				t.Errorf("%s: %s", path, r.GetBody())
			}
		})
	}
}
