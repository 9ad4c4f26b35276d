package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/envoyrun"
)

// unchecked are combinations with objects of gateways without definitions in a module: they are only rendered.
var unchecked = map[string]struct {
	values  string
	objects []string // of the gateway
}{
	"GKE":      {"gateway: { provider: gke }\n", []string{"GCPBackendPolicy/llama-weir", "HealthCheckPolicy/llama-weir"}},
	"kgateway": {"gateway: { provider: kgateway }\n", []string{"ListenerPolicy/llama-weir", "TrafficPolicy/llama-weir"}},
}

// They render, and attach to existing objects.
func TestUncheckedGateways(t *testing.T) {
	for name, test := range unchecked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := render(t, minimal, toGateway, test.values)
			consistent(t, all)
			for _, key := range test.objects {
				o := all.get(t, key)
				target := o.at("spec", "targetRef")
				if target == nil {
					target = o.at("spec", "targetRefs", 0)
				}
				to := object(target.(map[string]any))
				if kind := to.text("kind"); kind != "Gateway" {
					all.get(t, kind+"/"+to.text("name"))
				} else if to.text("name") != "gateway" {
					t.Errorf("%s attaches to the Gateway %s", key, to.text("name"))
				}
			}
		})
	}
}

// GKE's load balancers do not name their modes, so the configuration has the assumed ones, unless the values have them.
func TestAssumptionAboutGKE(t *testing.T) {
	config := func(values ...string) string {
		return render(t, append([]string{minimal, toGateway}, values...)...).get(t, "ConfigMap/llama-weir").text("data", "weir.yaml")
	}
	for name, test := range map[string]struct {
		values, want string
	}{
		"GKE":           {"gateway: { provider: gke }\n", "assumeFullDuplex: true\n"},
		"GKE, said so":  {"gateway: { provider: gke }\nconfig: { assumeFullDuplex: false }\n", "assumeFullDuplex: false\n"},
		"another":       {"gateway: { provider: kgateway }\n", ""},
		"no gateway":    {"", ""},
		"Envoy Gateway": {"gateway: { provider: envoy-gateway }\n", ""},
	} {
		got := config(test.values)
		if !strings.Contains(got, test.want) || test.want == "" && strings.Contains(got, "assumeFullDuplex") {
			t.Errorf("%s: the configuration is\n%s", name, got)
		}
	}
}

// The checks have each profile's settings: its longest wait, and whether its tiers preempt.
func TestProfilesBehindGateways(t *testing.T) {
	for _, name := range config.Profiles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := config.Profile(name)
			if err != nil {
				t.Fatal(err)
			}
			longest, preempts := d.FairRequestQueue.QueueTTL.Std(), false
			for _, tier := range d.Tiers {
				preempts = preempts || tier.CanPreempt
				if tier.QueueTimeout != nil {
					longest = max(longest, tier.QueueTimeout.Std())
				}
			}
			of := "config: { profile: " + name + " }\n"
			for timeout, renders := range map[time.Duration]bool{longest: false, longest + time.Second: true} {
				_, err := template(t, envoyGatewayOf, of, fmt.Sprintf("gateway: { envoyGateway: { messageTimeout: %.0fs } }\n", timeout.Seconds()))
				if renders != (err == nil) {
					t.Errorf("a messageTimeout of %v, where requests wait up to %v: %v", timeout, longest, err)
				}
			}
			if _, err := template(t, minimal, toGateway, "gateway: { provider: agentgateway }\n", of); preempts != (err != nil) {
				t.Errorf("agentgateway, whether tiers preempt: %v: %v", preempts, err)
			}
		})
	}
}

// Tiers that replace a profile's are checked instead.
func TestTiersInPlaceOfAProfiles(t *testing.T) {
	values := "config: { profile: smg-priority, replaceTiers: true, tiers: [ { name: first }, { name: default, queueTimeout: 50s } ] }\n"
	render(t, envoyGatewayOf, values)
	render(t, minimal, toGateway, "gateway: { provider: agentgateway }\n", values)
}

// The notes name the keys that a gateway needs in an operator's own configuration, which the chart cannot see.
func TestNotesOfAConfigurationOfTheOperators(t *testing.T) {
	for provider, key := range map[string]string{
		"gke": "assumeFullDuplex: true", "envoy-gateway": "below 60s", "agentgateway": "canPreempt must be false", "istio": "",
	} {
		notes := func(values ...string) string {
			args := []string{"install", release, chartDir, "--namespace", namespace, "--dry-run=client"}
			out, err := run(t, tool(t, "helm"), append(args, files(t, append(values, minimal, toGateway, "gateway: { provider: "+provider+" }\n"))...)...)
			if err != nil {
				t.Fatal(err)
			}
			_, notes, _ := strings.Cut(out, "NOTES:")
			return notes
		}
		own := notes("existingConfigMap: ours\n")
		_, said, ok := strings.Cut(own, "the ConfigMap ours.\n")
		if !ok || !strings.Contains(said, key) || key == "" && said != "" {
			t.Errorf("%s: the notes are %s", provider, own)
		}
		if of := notes(); key != "" && strings.Contains(of, key) {
			t.Errorf("%s: the notes of a configuration that the chart sees are %s", provider, of)
		}
	}
}

// Policies for a Gateway remove all headers that the shipped Envoy removes, in the namespace of each Gateway.
func TestHeadersThatClientsMustNotSend(t *testing.T) {
	shipped, err := envoyrun.Load("recommended")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range envoyrun.List(shipped.Filter(envoyrun.HeaderFilter), "mutations", "request_mutations") {
		want = append(want, envoyrun.Object(m)["remove"].(string))
	}
	// The route names two listeners of one Gateway. The other Gateway's name is not a number.
	two := "httpRoute: { enabled: true, parentRefs: [ { name: gateway, sectionName: a }, { name: gateway, sectionName: b }, { name: \"123\", namespace: gateways } ] }\n"
	for provider, remove := range map[string][]any{
		"envoy-gateway":    {"spec", "headers", "earlyRequestHeaders", "remove"},
		"envoy-ai-gateway": {"spec", "headers", "earlyRequestHeaders", "remove"},
		"kgateway":         {"spec", "default", "httpSettings", "earlyRequestHeaderModifier", "remove"},
	} {
		found, policies := map[string]bool{}, 0
		for key, o := range render(t, minimal, two, "gateway: { provider: "+provider+" }\n") {
			if o.text("spec", "targetRefs") == "" && o.at("spec", "targetRefs", 0) == nil ||
				object(o.at("spec", "targetRefs", 0).(map[string]any)).text("kind") != "Gateway" {
				continue
			}
			policies++
			found[o.text("metadata", "namespace")+"/"+object(o.at("spec", "targetRefs", 0).(map[string]any)).text("name")] = true
			if got := o.texts(remove...); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s removes %v, want %v", key, got, want)
			}
		}
		if len(found) != 2 || policies != 2 || !found[namespace+"/gateway"] || !found["gateways/123"] {
			t.Errorf("%s: the policies are for %v", provider, found)
		}
		for key := range render(t, minimal, two, "gateway: { provider: "+provider+", clientPolicy: false }\n") {
			if strings.HasPrefix(key, "ClientTrafficPolicy/") || strings.HasPrefix(key, "ListenerPolicy/") {
				t.Errorf("%s: %s is there although a policy of the operator's does the same", provider, key)
			}
		}
	}
}
