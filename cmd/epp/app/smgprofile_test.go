package app

import (
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/internal/expect"
)

// The profile smg-priority in one process: classes by header, clamped by tenant, each with its own queue. The answer to
// a preempted request is SMG's.
func TestSMGProfile(t *testing.T) {
	o := testOptions()
	o.Profile = "" // the file's
	o.ConfigText = strings.Join([]string{
		"profile: smg-priority",
		"requestQueueController: { slotsPerBackend: 1 }",
		"tiers: [ { name: system, reservedFloor: 0 }, { name: interactive, reservedFloor: 0, reservedPerSlot: 0 },",
		"  { name: default, reservedPerSlot: 0 }, { name: bulk, queueSize: 0 } ]",
		"flows: { key: [\"header:x-tenant\", model] }",
		"tenantPolicies: { vip: { maxClass: interactive } }",
	}, "\n")
	r := start(t, o)
	class := func(class string, more ...[2]string) extprocv3.ExternalProcessor_ProcessClient {
		return r.request(t.Context(), append(more, [2]string{"x-smg-priority", class})...)
	}
	victim := class(" Bulk ")
	granted(t, victim)

	// A queue of size 0 is full at once.
	answer, err := class("bulk").Recv()
	if err != nil {
		t.Fatal(err)
	}
	if a := answer.GetImmediateResponse(); a.GetStatus().GetCode() != 429 ||
		!strings.Contains(string(a.GetBody()), `"code":"scheduler_queue_full"`) {
		t.Errorf("a full queue: %v", a)
	}
	// A tenant without a policy is clamped to default, and default does not preempt.
	clamped := class("system")
	expect.True(t, "it waits in the default tier", func() bool {
		_, metrics := r.get("/metrics")
		return strings.Contains(metrics, `weir_tier_queue_length{tier="default"} 1`)
	})
	// A tenant that may use interactive preempts, even if it asks for more. The answer to the victim shows it.
	preemptor := class("system", [2]string{"x-tenant", "vip"})
	granted(t, preemptor)
	answer, err = victim.Recv()
	if err != nil {
		t.Fatal(err)
	}
	a := answer.GetImmediateResponse()
	headers := map[string]string{}
	for _, h := range a.GetHeaders().GetSetHeaders() {
		headers[h.GetHeader().GetKey()] = string(h.GetHeader().GetRawValue())
	}
	if a.GetStatus().GetCode() != 503 || headers["retry-after"] != "1" || headers["x-smg-preempted"] != "true" ||
		headers["x-weir-reason"] != "preempted" || !strings.Contains(string(a.GetBody()), `"code":"scheduler_preempted"`) {
		t.Errorf("preempted: %v", a)
	}
	if err := preemptor.CloseSend(); err != nil {
		t.Fatal(err)
	}
	granted(t, clamped)
	_, metrics := r.get("/metrics")
	for _, want := range []string{
		`weir_preempted_total{by_tier="interactive",victim_tier="bulk"} 1`,
		`weir_priority_clamps_total{effective="default",requested="system"} 1`,
		`weir_priority_clamps_total{effective="interactive",requested="system"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%q is not in /metrics", want)
		}
	}
}
