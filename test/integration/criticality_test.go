package integration

import (
	"slices"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// With enqueueAll nothing is shed: each request waits in the tier of its criticality. That is the first one declared by
// trusted metadata, class header, objective, model and tenant's class, else the default. Its tenant's maximum may lower
// it but never raises it. Waiting requests go by tier.
func TestEveryCriticalityQueuesInItsTier(t *testing.T) {
	t.Parallel()
	const namespace = "weir.test.auth"
	v := newValve()
	cfg := recorded(1)
	cfg.TagHeader = "x-case"
	s := start(t, setup{
		models: []modelsim.Config{v.on(cfg)},
		config: `
fairRequestQueue: { capacityMode: shared, queueTTL: 10m }
requestQueueController: { enqueueAll: true, watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }
flows: { key: ["header:x-tenant"] }
criticality: { header: x-class, metadata: weir.test.auth/class, default: Standard, maxClass: Standard }
models:
- { name: cheap, criticality: Sheddable, targets: [ { name: tiny } ] }
- { name: dear, criticality: Critical, targets: [ { name: tiny } ] }
objectives: [ { name: batch, priority: -1 }, { name: usual, priority: 0 }, { name: urgent, priority: 7 } ]
tenantPolicies: { vip: { maxClass: critical }, low: { maxClass: sheddable }, gold: { class: critical }, bulk: { class: sheddable } }
`,
		edit: func(b envoyrun.Bootstrap) error {
			metadataFromHeader(b, "x-test-class", namespace, "class")
			forwarded := envoyrun.Object(b.Filter(envoyrun.ExtProcFilter), "metadata_options", "forwarding_namespaces")
			forwarded["untyped"] = append(forwarded["untyped"].([]any), namespace)
			return nil
		},
	})
	s.begin(from("plug"))
	s.epp.waitFor(1, "weir_stock_level")

	const objective = "x-llm-d-inference-objective"
	trusted := func(class string) []string { return []string{"x-test-class", inMetadata(t, class)} }
	tiers := []string{"critical", "default", "sheddable"}
	waiting, tierOf := map[string]int{}, map[string]string{}
	var held []*pending
	for _, test := range []struct {
		name   string
		tenant string
		model  string
		header []string
		want   string
	}{
		{"nobody says", "vip", "", nil, "default"},
		{"the model", "vip", "cheap", nil, "sheddable"},
		{"the model, critical", "vip", "dear", nil, "critical"},
		{"an objective's priority", "vip", "", []string{objective, "batch"}, "sheddable"},
		{"an objective's priority above all", "vip", "", []string{objective, "urgent"}, "critical"},
		{"an objective before the model", "vip", "cheap", []string{objective, "usual"}, "default"},
		{"the class header before the objective", "vip", "", []string{"x-class", "critical", objective, "batch"}, "critical"},
		{"a header that names no tier says nothing", "vip", "", []string{"x-class", "royal", objective, "batch"}, "sheddable"},
		{"metadata before all", "vip", "dear", append(trusted("sheddable"), "x-class", "critical"), "sheddable"},
		{"metadata, critical", "vip", "cheap", append(trusted(" Critical"), objective, "batch"), "critical"},
		{"clamped by its policy", "low", "dear", []string{"x-class", "critical"}, "sheddable"},
		{"clamped also when metadata says it", "low", "", trusted("critical"), "sheddable"},
		{"clamped as those without a policy are", "nobody", "", []string{"x-class", "critical"}, "default"},
		{"clamped without a tenant", "", "dear", nil, "default"},
		{"below the highest it stays below", "vip", "", []string{"x-class", "sheddable"}, "sheddable"},
		{"nor is it raised to the default's", "nobody", "cheap", nil, "sheddable"},
		{"its tenant's class", "gold", "", nil, "critical"},
		{"its tenant's class, below the default", "bulk", "", nil, "sheddable"},
		{"the model before its tenant's class", "gold", "cheap", nil, "sheddable"},
		{"an objective before its tenant's class", "bulk", "", []string{objective, "usual"}, "default"},
		{"the class header before its tenant's class", "gold", "", []string{"x-class", "default"}, "default"},
		{"metadata before its tenant's class", "gold", "", trusted("sheddable"), "sheddable"},
	} {
		a := ask{header: append([]string{"x-case", test.name}, test.header...)}
		if test.tenant != "" {
			a.header = append(a.header, "x-tenant", test.tenant)
		}
		if test.model != "" {
			a.body = chat(test.model, false)
		}
		held = append(held, s.begin(a))
		waiting[test.want]++
		tierOf[test.name] = test.want
		s.run(test.name, func() {
			s.epp.waitFor(float64(len(held)), "weir_queue_length")
			for _, tier := range tiers {
				if n := s.epp.value("weir_tier_queue_length", "tier", tier); n != float64(waiting[tier]) {
					s.t.Errorf("%v wait in %s, want %d", n, tier, waiting[tier])
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	v.open()
	for _, p := range held {
		wantServed(t, "a request", p.wait())
	}
	s.epp.settled()
	if got := s.epp.outcomes(); len(got) != 1 || got["dispatched"] != 1+len(held) {
		t.Errorf("outcomes are %v, want all dispatched", got)
	}
	for _, effective := range tiers[1:] {
		if n := s.epp.value("weir_priority_clamps_total", "requested", "critical", "effective", effective); n != 2 {
			t.Errorf("%v were lowered from critical to %s, want 2", n, effective)
		}
	}
	served := tenants(s.models[0])[1:]
	if !slices.IsSortedFunc(served, func(a, b string) int {
		return slices.Index(tiers, tierOf[a]) - slices.Index(tiers, tierOf[b])
	}) {
		t.Errorf("not served by tier: %q", served)
	}
}
