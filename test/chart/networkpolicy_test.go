package chart

import (
	"maps"
	"slices"
	"testing"
)

// With peers for all, each port of each pod has exactly one rule, with its peers. Without peers no rule is left that
// would admit everybody. The ports are those of the rendered containers. The objects are only rendered: no plugin
// enforces them.
func TestNetworkPolicyNamesItsPeers(t *testing.T) {
	for _, mode := range []string{"none", "sidecar", "standalone"} {
		all := render(t, minimal, allPeers, "envoy: { mode: "+mode+" }\n")
		for key, o := range all {
			if o.kind() != "Deployment" {
				continue
			}
			pod := object(o.at("spec", "template").(map[string]any))
			ports := map[any]bool{}
			for _, c := range containers(object(pod.at("spec").(map[string]any))) {
				for _, p := range c.at("ports").([]any) {
					ports[p.(map[string]any)["containerPort"]] = true
				}
			}
			rules := admitted(t, all, pod)
			if !slices.Equal(sortedInts(maps.Keys(ports)), sortedInts(maps.Keys(rules))) {
				t.Errorf("%s: %s has the ports %v, and rules for %v", mode, key, ports, rules)
			}
			for port, peers := range rules {
				if len(peers) == 0 {
					t.Errorf("%s: %s: anybody may connect to %v", mode, key, port)
				}
			}
		}
	}
	closed := render(t, minimal, "networkPolicy: { enabled: true }\n")
	pod := object(closed.deployment(t).at("spec", "template").(map[string]any))
	for port, peers := range admitted(t, closed, pod) {
		if port != 9003 || len(peers) != 1 {
			t.Errorf("without peers %v may connect to %v; only helm test may, to 9003", peers, port)
		}
	}
}

// admitted returns the peers by port of the policies that select a pod.
func admitted(t *testing.T, all objects, pod object) map[any][]any {
	t.Helper()
	rules := map[any][]any{}
	found := false
	for key, o := range all {
		if o.kind() != "NetworkPolicy" || !selects(o.at("spec", "podSelector", "matchLabels"), pod) {
			continue
		}
		found = true
		if types := o.texts("spec", "policyTypes"); !slices.Equal(types, []string{"Ingress"}) {
			t.Errorf("%s restricts %v", key, types)
		}
		list, _ := o.at("spec", "ingress").([]any)
		for _, r := range list {
			rule := object(r.(map[string]any))
			from, _ := rule.at("from").([]any)
			ports, _ := rule.at("ports").([]any)
			if len(ports) != 1 {
				t.Errorf("%s has a rule for the ports %v", key, ports)
			}
			for _, p := range ports {
				port := p.(map[string]any)["port"]
				if _, twice := rules[port]; twice {
					t.Errorf("%s has two rules for %v", key, port)
				}
				rules[port] = from
			}
		}
	}
	if !found {
		t.Error("no policy selects the pods")
	}
	return rules
}

func sortedInts(keys func(func(any) bool)) []int {
	var all []int
	for k := range keys {
		all = append(all, k.(int))
	}
	slices.Sort(all)
	return all
}
