package chart

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// Values that an operator adds to the imported ones. For a test, Weir need not wait at its end for gateways that still
// use it. Engines that do not state their slots have one.
const (
	brief   = "config: { requestQueueController: { drainWindow: 1s } }\n"
	oneSlot = "config: { requestQueueController: { drainWindow: 1s, slotsPerBackend: 1 } }\n"
)

// Weir replaces a release of llm-d's or GIE's endpoint picker, and the release replaces Weir again, by the steps of
// docs/llm-d.md. The InferencePool and the HTTPRoute stay the same objects, and only the pool's reference changes.
// Requests are served all the time, by a picker, and queue while Weir is in place. In the end everything is as before.
func TestTakesThePlaceOfAnotherPicker(t *testing.T) {
	const llmd = "router:\n  modelServers: { matchLabels: { app: qwen }, targetPorts: [ PORTS ] }\n  epp:\n    flags: { metrics-endpoint-auth: false }\n"
	for name, test := range map[string]struct{ from, values, ours string }{
		"llm-d":            {"llm-d", llmd + "httpRoute: { create: true }\n", oneSlot},
		"llm-d with Istio": {"llm-d", llmd + "httpRoute: { create: true }\nprovider: { name: istio }\n", oneSlot},
		// Their bound becomes Weir's, and the route is no part of the release.
		"llm-d with flow control": {"llm-d", llmd + `    replicas: 2
    pluginsConfigFile: custom-plugins.yaml
    pluginsCustomConfig:
      custom-plugins.yaml: |
        apiVersion: llm-d.ai/v1alpha1
        kind: EndpointPickerConfig
        featureGates: [flowControl]
        plugins:
        - type: queue-scorer
        - type: round-robin-fairness-policy
        - { type: concurrency-detector, parameters: { maxConcurrency: 1 } }
        schedulingProfiles: [ { name: default, plugins: [ { pluginRef: queue-scorer, weight: 2 } ] } ]
        flowControl:
          saturationDetector: { pluginRef: concurrency-detector }
          priorityBands: [ { priority: 0, fairnessPolicyRef: round-robin-fairness-policy } ]
`, brief},
		"GIE": {"gie", `inferenceExtension:
  replicas: 1
  failureMode: FailOpen
  flags: { metrics-endpoint-auth: false }
  pluginsConfigFile: default-plugins.yaml
inferencePool: { modelServers: { matchLabels: { app: qwen } }, modelServerType: vllm, targetPorts: [ PORTS ] }
experimentalHttpRoute: { enabled: true, inferenceGatewayName: inference-gateway }
`, oneSlot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, test.values)
			before := p.release()
			stop := p.load()
			p.served(p.theirs)

			p.installWeir(test.from, test.ours)
			p.selectsItsOwn()
			for _, kind := range []string{"inferencepools", "httproutes"} {
				if all := p.kubectl("get", kind, "--output", "jsonpath={.items[*].metadata.name}"); all != "demo" {
					t.Errorf("beside theirs there are the %s %s", kind, all)
				}
			}
			p.refer("weir")
			p.served(p.weir)
			p.kubectl("scale", "deployment/demo-epp", "--replicas=0")
			p.end(p.theirs)
			stop()
			p.queued()
			for _, problem := range differences(before, p.release(), "spec.endpointPickerRef.name", "spec.replicas") {
				t.Errorf("while Weir has the place: %s", problem)
			}

			if out, err := p.try("helm", "upgrade", "demo", "../peers/picker", "--values", p.values); err == nil || !strings.Contains(err.Error(), "conflict") {
				t.Errorf("an upgrade of theirs ends with %v, want a conflict over the reference: %s", err, out)
			}
			p.kubectl("scale", "deployment/demo-epp", fmt.Sprint("--replicas=", before["Deployment/demo-epp"].at("spec", "replicas")))
			p.theirs = p.startTheirs()
			stop = p.load()
			p.served(p.weir)
			p.refer("demo-epp")
			p.served(p.theirs)
			left := p.helm("get", "manifest", "weir")
			p.helm("uninstall", "weir")
			p.end(p.weir)
			stop()
			for _, problem := range differences(before, p.release()) {
				t.Errorf("after the way back: %s", problem)
			}
			p.helm("upgrade", "demo", "../peers/picker", "--values", p.values)
			for _, problem := range differences(before, p.release()) {
				t.Errorf("after an upgrade of theirs: %s", problem)
			}
			for key, o := range parse(t, left) {
				if p.live(o) != nil {
					t.Errorf("%s is still there", key)
				}
			}
			if stats, err := p.envoy.Stats(t.Context(), "ext_proc.*failure_mode_allowed"); err != nil {
				t.Error(err)
			} else {
				if len(stats) == 0 {
					t.Error("Envoy does not count requests that went past a picker")
				}
				for name, n := range stats {
					if n > 0 {
						t.Errorf("%d requests went past both pickers: %s", n, name)
					}
				}
			}
		})
	}
}

// An uninstallation of their release removes the pool and the route, whatever annotations the objects have.
func TestUninstallingTheirsTakesThePool(t *testing.T) {
	p := newPlace(t, "router: { modelServers: { matchLabels: { app: qwen }, targetPorts: [ PORTS ] } }\nhttpRoute: { create: true }\n")
	p.kubectl("annotate", "inferencepool/demo", "httproute/demo", "helm.sh/resource-policy=keep")
	p.helm("uninstall", "demo")
	if left := p.kubectl("get", "inferencepools,httproutes", "--output", "name"); left != "" {
		t.Errorf("docs/llm-d.md lists these as gone: %s", left)
	}
}

// queued sends more requests than the stock holds: the others wait, and each end releases one.
func (p *place) queued() {
	p.t.Helper()
	const requests, slots = 8, 2 // two engines of 1 slot each
	p.engine.hold()
	defer p.engine.pass()
	before := p.engine.count()
	answers := make(chan error, requests)
	for range requests {
		go func() { answers <- p.ask(p.t.Context()) }()
	}
	running, waiting := 0, 0
	look := func(want func() bool) func() error {
		return func() error {
			_, text := p.weir.scrape("")
			running, waiting = p.engine.count()-before, int(sumOf(text, "weir_queue_length"))
			if running+waiting != requests || !want() {
				return fmt.Errorf("%d requests came to the engines, and %d wait", running, waiting)
			}
			return nil
		}
	}
	p.weir.await("the stock is full, and requests wait", look(func() bool { return running == slots }))
	p.engine.passOne()
	p.weir.await("one more came to the engines", look(func() bool { return running == slots+1 }))
	p.engine.pass()
	for range requests {
		if err := <-answers; err != nil {
			p.t.Error(err)
		}
	}
}

// sumOf adds up the values of a metric.
func sumOf(text, metric string) (sum float64) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, metric); ok && strings.HasPrefix(rest, "{") {
			var value float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &value); err == nil {
				sum += value
			}
		}
	}
	return sum
}

// differences names the objects that are new or have another content, except for fields that may differ.
func differences(before, after objects, but ...string) (problems []string) {
	for key, o := range before {
		now := after[key]
		if now == nil {
			problems = append(problems, key+" is gone")
			continue
		}
		was, is := flat("", map[string]any(o)), flat("", map[string]any(now))
		for _, path := range but {
			delete(was, path)
			delete(is, path)
		}
		for path, value := range is {
			if was[path] != value {
				problems = append(problems, fmt.Sprintf("%s: %s is %v", key, path, value))
			}
			delete(was, path)
		}
		for path, value := range was {
			problems = append(problems, fmt.Sprintf("%s: %s was %v", key, path, value))
		}
	}
	return problems
}

// flat returns the values of an object by their paths.
func flat(path string, v any) map[string]string {
	all := map[string]string{}
	m, ok := v.(map[string]any)
	if !ok {
		all[path] = fmt.Sprint(v)
	}
	for key, value := range m {
		maps.Copy(all, flat(strings.TrimPrefix(path+"."+key, "."), value))
	}
	return all
}
