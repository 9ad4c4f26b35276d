package chart

import (
	"slices"
	"strings"
	"testing"
)

// matrix has each toggle of the values in both positions, and the values that belong together.
var matrix = map[string]string{
	"minimal":          minimal,
	"one replica":      minimal + "replicas: 1\nleaderElection: { enabled: false }\n",
	"selector":         "pool: { source: Selector, matchLabels: { app: llama, role: decode }, targetPorts: [8000, 8001] }\n",
	"existing pool":    "pool: { create: false, name: theirs }\n",
	"eight ports":      "pool: { matchLabels: { app: llama }, targetPorts: [8000, 8001, 8002, 8003, 8004, 8005, 8006, 8007], appProtocol: kubernetes.io/h2c, failureMode: FailClose }\n",
	"objectives":       minimal + "objectives: [ { name: interactive, priority: 10 }, { name: batch, priority: -1 }, { name: plain } ]\n",
	"old objectives":   minimal + "objectives: [ { name: batch, priority: -1 } ]\nobjectivesGroup: inference.networking.x-k8s.io\n",
	"configuration":    minimal + "config: { profile: smg-priority, requestQueueController: { slotsPerBackend: 8 } }\nconfigChecksum: true\n",
	"their ConfigMap":  minimal + "existingConfigMap: theirs\n",
	"plaintext":        minimal + "tls: { enabled: false }\n",
	"certificate":      minimal + "tls: { secretName: weir-tls, minVersion: \"1.3\", clientCAConfigMap: gateway-ca }\n",
	"cert-manager":     minimal + "tls: { certManager: { enabled: true, issuerRef: { name: ca } } }\n",
	"open metrics":     minimal + "metrics: { auth: { enabled: false }, scrapeAnnotations: true, aliases: true }\n",
	"metrics over TLS": minimal + "metrics: { tls: { enabled: true, secretName: metrics-tls }, serviceMonitor: { enabled: true } }\n",
	"self-signed metrics": minimal + "metrics: { tls: { enabled: true }, auth: { tokenSecret: { name: token, key: token } }, " +
		"podMonitor: { enabled: true, labels: { release: prometheus } } }\n",
	"ServiceMonitor": minimal + "metrics: { auth: { readers: [ { name: prometheus, namespace: monitoring } ] }, " +
		"serviceMonitor: { enabled: true, labels: { release: prometheus }, interval: 5s } }\n",
	"PodMonitor": minimal + "metrics: { auth: { enabled: false }, podMonitor: { enabled: true } }\n",
	"alerts": minimal + "metrics: { prometheusRule: { enabled: true, labels: { release: prometheus }, alertLabels: { team: inference }, " +
		"runbookURL: https://example.com/troubleshooting } }\n",
	"tracing":          minimal + "tracing: { enabled: true, endpoint: \"http://collector:4317\" }\n",
	"traces over HTTP": minimal + "tracing: { enabled: true, endpoint: \"https://collector\", protocol: http/protobuf, sampler: traceidratio, samplerArg: \"0.1\" }\n",
	"autoscaling":      minimal + "autoscaling: { enabled: true, target: { name: llama } }\n",
	"autoscaling by selector": "pool: { source: Selector, matchLabels: { app: llama, role: decode } }\n" +
		"autoscaling: { enabled: true, target: { name: llama } }\n",
	"no budget":               minimal + "podDisruptionBudget: { enabled: false }\n",
	"budget per cent":         minimal + "podDisruptionBudget: { maxUnavailable: 50% }\n",
	"network policy":          minimal + allPeers,
	"closed":                  minimal + "networkPolicy: { enabled: true }\n",
	"route":                   minimal + "httpRoute: { enabled: true, parentRefs: [ { name: gateway, namespace: gateways } ], hostnames: [llama.example.com] }\n",
	"route of matches":        minimal + "httpRoute: { enabled: true, parentRefs: [ { name: gateway } ], matches: [ { headers: [ { name: x-model, value: llama } ] } ] }\n",
	"Envoy Gateway":           minimal + toGateway + "gateway: { provider: envoy-gateway }\n",
	"Envoy Gateway, verified": minimal + toGateway + "gateway: { provider: envoy-gateway, envoyGateway: { caConfigMap: ca, responseBody: Streamed } }\n",
	"Envoy Gateway, plaintext": "pool: { source: Selector, matchLabels: { app: llama }, targetPorts: [8000, 8001], appProtocol: kubernetes.io/h2c }\n" +
		"tls: { enabled: false }\nhttpRoute: { enabled: true, parentRefs: [ { name: a }, { name: b } ] }\ngateway: { provider: envoy-gateway }\n",
	"Envoy Gateway, all of an answer": "pool: { matchLabels: { app: llama }, failureMode: FailClose }\n" + toGateway +
		"gateway: { provider: envoy-gateway, envoyGateway: { responseBody: FullDuplexStreamed } }\n",
	"Istio":            minimal + toGateway + "gateway: { provider: istio }\n",
	"Istio, plaintext": minimal + "tls: { enabled: false }\ngateway: { provider: istio }\n",
	"Envoy AI Gateway": minimal + toGateway + "gateway: { provider: envoy-ai-gateway }\n",
	"agentgateway":     minimal + toGateway + "gateway: { provider: agentgateway }\n",
	"KEDA":             minimal + "autoscaling: { enabled: true, kind: ScaledObject, prometheusAddress: \"http://prometheus:9090\", target: { name: llama } }\n",
	"KEDA by selector": "pool: { source: Selector, matchLabels: { app: llama } }\n" +
		"autoscaling: { enabled: true, kind: ScaledObject, prometheusAddress: \"http://prometheus:9090\", target: { name: llama } }\n",
	"sidecar": minimal + "envoy: { mode: sidecar, podMonitor: { enabled: true } }\n" + allPeers,
	"standalone": "pool: { matchLabels: { app: llama }, targetPorts: [8000, 8001], appProtocol: kubernetes.io/h2c }\n" +
		"envoy: { mode: standalone, serviceType: LoadBalancer, podMonitor: { enabled: true } }\n" + allPeers,
	"long name standalone":  minimal + "fullnameOverride: " + strings.Repeat("a", 49) + "\nenvoy: { mode: standalone }\n",
	"standalone plaintext":  minimal + "envoy: { mode: standalone, replicas: 1 }\ntls: { enabled: false }\n",
	"their service account": minimal + "serviceAccount: { create: false, name: theirs }\nrbac: { create: false }\n",
	"pods": minimal + `fullnameOverride: picker
nameOverride: picker
image: { digest: "sha256:` + strings.Repeat("0a", 32) + `", pullPolicy: Always }
imagePullSecrets: [ { name: registry } ]
drainSeconds: 300
drainMarginSeconds: 30
serviceAccount: { annotations: { example.com/role: weir } }
service: { annotations: { example.com/a: b } }
verbosity: 1
extraArgs: [ --record=16, --hash-flow-keys ]
extraEnv: [ { name: GOGC, value: "200" } ]
extraVolumes: [ { name: scratch, emptyDir: {} } ]
extraVolumeMounts: [ { name: scratch, mountPath: /scratch } ]
podLabels: { team: inference }
podAnnotations: { example.com/c: d }
priorityClassName: system-cluster-critical
nodeSelector: { kubernetes.io/os: linux }
affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [ { weight: 1, podAffinityTerm: { topologyKey: zone } } ] } }
tolerations: [ { key: dedicated, operator: Exists, effect: NoSchedule } ]
topologySpreadConstraints: [ { maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule } ]
`,
	"long name": minimal + "fullnameOverride: " + strings.Repeat("a", 49) + "\n",
}

// toGateway has a route that attaches to a Gateway.
const toGateway = "httpRoute: { enabled: true, parentRefs: [ { name: gateway } ] }\n"

const allPeers = `networkPolicy:
  enabled: true
  gateways: [ { namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: gateways } } } ]
  healthCheckers: [ { ipBlock: { cidr: 10.0.0.0/8 } } ]
  scrapers: [ { namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: monitoring } } } ]
  clients: [ { podSelector: {} } ]
`

// Every combination renders, and its objects fit together.
func TestMatrix(t *testing.T) {
	for name, values := range matrix {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := render(t, values)
			for key, o := range all {
				cluster := strings.HasPrefix(o.kind(), "ClusterRole")
				if len(o.name()) > 63 && !cluster {
					t.Errorf("%s: a name of %d characters", key, len(o.name()))
				}
				if got := o.text("metadata", "namespace"); (got == namespace) == cluster {
					t.Errorf("%s is in the namespace %q", key, got)
				}
				if o.text("metadata", "labels", "app.kubernetes.io/instance") != release {
					t.Errorf("%s does not say which release it is of", key)
				}
			}
			consistent(t, all)
		})
	}
}

// consistent checks references between objects, which an apiserver does not check.
func consistent(t *testing.T, all objects) {
	t.Helper()
	for key, o := range all {
		switch o.kind() {
		case "Deployment":
			pod := object(o.at("spec", "template").(map[string]any))
			if !selects(o.at("spec", "selector", "matchLabels"), pod) {
				t.Errorf("%s does not select its own pods", key)
			}
		case "Service", "PodDisruptionBudget", "NetworkPolicy":
			selector := o.at("spec", "selector")
			if m, is := selector.(map[string]any); is && m["matchLabels"] != nil {
				selector = m["matchLabels"]
			}
			if o.kind() == "NetworkPolicy" {
				selector = o.at("spec", "podSelector", "matchLabels")
			}
			if strings.HasSuffix(o.name(), "-model-servers") {
				continue
			}
			if selector == nil && all["EndpointSlice/"+o.name()] != nil {
				continue // TestServiceLeadsToTheLeader
			}
			if !selectsOne(all, selector) {
				t.Errorf("%s selects no pods of the chart: %v", key, selector)
			}
		case "RoleBinding", "ClusterRoleBinding":
			all.get(t, o.text("roleRef", "kind")+"/"+o.text("roleRef", "name"))
		case "InferencePool":
			service := all.get(t, "Service/"+o.text("spec", "endpointPickerRef", "name"))
			if !slices.Contains(portsOf(service), o.at("spec", "endpointPickerRef", "port", "number")) {
				t.Errorf("%s refers to a port that its Service does not have", key)
			}
		}
	}
}

func portsOf(service object) []any {
	var ports []any
	for _, p := range service.at("spec", "ports").([]any) {
		ports = append(ports, p.(map[string]any)["port"])
	}
	return ports
}

// selectsOne reports whether a selector selects the pods of a Deployment.
func selectsOne(all objects, selector any) bool {
	m, _ := selector.(map[string]any)
	for _, o := range all {
		if o.kind() == "Deployment" && len(m) > 0 && selects(m, object(o.at("spec", "template").(map[string]any))) {
			return true
		}
	}
	return false
}

func selects(selector any, pod object) bool {
	labels, _ := pod.at("metadata", "labels").(map[string]any)
	for key, want := range selector.(map[string]any) {
		if labels[key] != want {
			return false
		}
	}
	return true
}

// helm lint has no finding and no recommendation except an icon.
func TestLint(t *testing.T) {
	out, err := run(t, tool(t, "helm"), append([]string{"lint", "--strict", chartDir}, files(t, []string{minimal})...)...)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "[") && !strings.Contains(line, "icon is recommended") {
			t.Error(line)
		}
	}
}
