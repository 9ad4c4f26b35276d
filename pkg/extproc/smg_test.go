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
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "NONE/NONE", smgLike, func(c *conversation) {
				var pass []string
				for _, v := range test.values {
					pass = append(pass, "x-smg-priority", v)
				}
				if test.tenant != "" {
					pass = append(pass, "x-tenant", test.tenant)
				}
				c.say(chat(pass...))
				c.heard()
				if got := c.controller.requests[0].Tier; got != test.want {
					t.Errorf("tier %d, want %d", got, test.want)
				}
				if got := c.counted("weir_priority_unknown_total"); got != test.unknown {
					t.Errorf("%d unknown, want %d", got, test.unknown)
				}
				clamps := 0
				if test.clamp != "" {
					clamps = 1
					from, to, _ := strings.Cut(test.clamp, "/")
					m := c.server.metrics.clamps.WithLabelValues(from, to)
					if before := c.counted("weir_priority_clamps_total"); before != 1 || m == nil {
						t.Errorf("%s is not counted", test.clamp)
					}
				}
				if got := c.counted("weir_priority_clamps_total"); got != clamps {
					t.Errorf("%d clamps, want %d", got, clamps)
				}
			})
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
