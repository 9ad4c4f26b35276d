package chart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// reach has values and their destinations: the kind and name of an object, the path in it, and the content there, in
// YAML. A step of a path into a list is an index, the name of an element, or a flag, which leads to its value ("true"
// for one without a value). "absent" is nothing.
var reach = map[string]struct {
	values string
	at     map[string]string
}{
	"by default": {minimal, map[string]string{
		"Deployment/llama-weir spec replicas":                                                                "2",
		"Deployment/llama-weir spec template spec containers epp image":                                      "ghcr.io/weir-epp/weir:APPVERSION",
		"Deployment/llama-weir spec template spec containers epp imagePullPolicy":                            "IfNotPresent",
		"Deployment/llama-weir spec template spec containers epp args --pool-name":                           "llama",
		"Deployment/llama-weir spec template spec containers epp args --pool-group":                          "inference.networking.k8s.io",
		"Deployment/llama-weir spec template spec containers epp args --endpoint-selector":                   "absent",
		"Deployment/llama-weir spec template spec containers epp args --config-file":                         "/etc/weir/weir.yaml",
		"Deployment/llama-weir spec template spec containers epp args --secure-serving":                      "true",
		"Deployment/llama-weir spec template spec containers epp args --metrics-endpoint-auth":               "true",
		"Deployment/llama-weir spec template spec containers epp args --metrics-secure-serving":              "absent",
		"Deployment/llama-weir spec template spec containers epp args --metric-aliases":                      "absent",
		"Deployment/llama-weir spec template spec containers epp args --cert-path":                           "absent",
		"Deployment/llama-weir spec template spec containers epp startupProbe failureThreshold":              "60",
		"Deployment/llama-weir spec template spec containers epp volumeMounts":                               "[{name: config, mountPath: /etc/weir, readOnly: true}]",
		"Deployment/llama-weir spec template spec containers epp resources limits memory":                    "3Gi",
		"Deployment/llama-weir spec template spec containers epp env NAMESPACE valueFrom fieldRef fieldPath": "metadata.namespace",
		"Deployment/llama-weir spec template spec containers epp env POD_NAME valueFrom fieldRef fieldPath":  "metadata.name",
		"Deployment/llama-weir spec template spec containers epp env POD_UID valueFrom fieldRef fieldPath":   "metadata.uid",
		"Deployment/llama-weir spec template spec containers epp env POD_IP valueFrom fieldRef fieldPath":    "status.podIP",
		"Deployment/llama-weir spec template spec volumes config configMap name":                             "llama-weir",
		"Deployment/llama-weir spec template spec serviceAccountName":                                        "llama-weir",
		"Deployment/llama-weir spec template spec automountServiceAccountToken":                              "true",
		"Deployment/llama-weir spec template spec securityContext runAsUser":                                 "65532",
		"Deployment/llama-weir spec template spec securityContext seccompProfile type":                       "RuntimeDefault",
		"Deployment/llama-weir spec template spec topologySpreadConstraints 0 whenUnsatisfiable":             "ScheduleAnyway",
		"Deployment/llama-weir spec template spec topologySpreadConstraints 0 labelSelector matchLabels":     labelsOf("weir", "epp"),
		"Deployment/llama-weir spec template metadata annotations prometheus.io/scrape":                      "absent",
		"Service/llama-weir spec type":                                                         "ClusterIP",
		"Service/llama-weir spec selector":                                                     "absent",
		"EndpointSlice/llama-weir addressType":                                                 "IPv4",
		"EndpointSlice/llama-weir endpoints":                                                   "absent",
		"EndpointSlice/llama-weir metadata labels kubernetes.io/service-name":                  "llama-weir",
		"EndpointSlice/llama-weir ports":                                                       "[{name: grpc, port: 9002, protocol: TCP, appProtocol: https}, {name: grpc-health, port: 9003, protocol: TCP, appProtocol: kubernetes.io/h2c}]",
		"Deployment/llama-weir spec template spec containers epp args --leader-endpoint-slice": "llama-weir",
		"Service/llama-weir spec ports":                                                        "[{name: grpc, port: 9002, targetPort: 9002, appProtocol: https}, {name: grpc-health, port: 9003, targetPort: 9003, appProtocol: kubernetes.io/h2c}]",
		"Service/llama-weir-replicas spec clusterIP":                                           "None",
		"Service/llama-weir-replicas spec selector":                                            labelsOf("weir", "epp"),
		"Service/llama-weir-replicas spec ports":                                               "[{name: grpc, port: 9002, targetPort: 9002, appProtocol: https}, {name: grpc-health, port: 9003, targetPort: 9003, appProtocol: kubernetes.io/h2c}, {name: metrics, port: 9090, targetPort: 9090, appProtocol: http}]",
		"InferencePool/llama spec":                                                             "{selector: {matchLabels: {app: llama}}, targetPorts: [{number: 8000}], endpointPickerRef: {name: llama-weir, port: {number: 9002}, failureMode: FailOpen}}",
		"PodDisruptionBudget/llama-weir spec":                                                  "{maxUnavailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow, selector: {matchLabels: " + labelsOf("weir", "epp") + "}}",
		"RoleBinding/llama-weir subjects":                                                      "[{kind: ServiceAccount, name: llama-weir, namespace: inference}]",
		"ClusterRoleBinding/inference.llama-weir-metrics-auth subjects":                        "[{kind: ServiceAccount, name: llama-weir, namespace: inference}]",
		"ClusterRole/inference.llama-weir-metrics-reader rules":                                "[{nonResourceURLs: [/metrics], verbs: [get]}]",
		"Pod/llama-weir-test spec containers ready args":                                       "[-addr=llama-weir:9003, -service=readiness, -connect-timeout=5s, -rpc-timeout=5s]",
		"Pod/llama-weir-test metadata labels app.kubernetes.io/component":                      "test",
		"Pod/llama-weir-test spec containers ready image":                                      "ghcr.io/grpc-ecosystem/grpc-health-probe:v0.4.40",
		"ClusterRoleBinding/inference.llama-weir-metrics-reader":                               "absent",
		"HorizontalPodAutoscaler/llama-weir-model-servers":                                     "absent",
	}},
	"one replica": {minimal + "replicas: 1\nleaderElection: { enabled: false }\nmetrics: { auth: { enabled: false }, scrapeAnnotations: true, aliases: true }\npodDisruptionBudget: { enabled: false }\nexistingConfigMap: theirs\nimage: { repository: example.com/weir, tag: v9 }\n", map[string]string{
		"EndpointSlice/llama-weir":                                                                      "absent",
		"Deployment/llama-weir spec template spec containers epp image":                                 "example.com/weir:v9",
		"Deployment/llama-weir spec replicas":                                                           "1",
		"Deployment/llama-weir spec template spec containers epp args --leader-election-lease-duration": "absent",
		"Deployment/llama-weir spec template spec containers epp args --metrics-endpoint-auth":          "false",
		"Deployment/llama-weir spec template spec containers epp args --metric-aliases":                 "true",
		"Deployment/llama-weir spec template spec volumes config configMap name":                        "theirs",
		"Deployment/llama-weir spec template metadata annotations prometheus.io/port":                   "9090",
		"Deployment/llama-weir spec template metadata annotations prometheus.io/path":                   "/metrics",
		"Deployment/llama-weir spec template metadata annotations prometheus.io/scheme":                 "http",
		"Service/llama-weir spec selector":                                                              labelsOf("weir", "epp"),
		"Role/llama-weir rules 0 verbs":                                                                 "[list, watch]",
		"PodDisruptionBudget/llama-weir":                                                                "absent",
		"ConfigMap/llama-weir":                                                                          "absent",
		"ClusterRole/inference.llama-weir-metrics-auth":                                                 "absent",
		"ClusterRole/inference.llama-weir-metrics-reader":                                               "absent",
	}},
	"an election": {minimal + "replicas: 3\nleaderElection: { leaseDuration: 30s, retryPeriod: 3s, addressType: IPv6 }\ntakeoverWindow: 90s\npodDisruptionBudget: { maxUnavailable: 50% }\n", map[string]string{
		"EndpointSlice/llama-weir addressType":                                                          "IPv6",
		"Deployment/llama-weir spec replicas":                                                           "3",
		"Deployment/llama-weir spec template spec containers epp args --ha-enable-leader-election":      "true",
		"Deployment/llama-weir spec template spec containers epp args --leader-election-lease-duration": "30s",
		"Deployment/llama-weir spec template spec containers epp args --leader-election-retry-period":   "3s",
		"Deployment/llama-weir spec template spec containers epp args --takeover-window":                "90s",
		"PodDisruptionBudget/llama-weir spec maxUnavailable":                                            "50%",
	}},
	"a selector": {"pool: { source: Selector, matchLabels: { app: llama, role: decode }, targetPorts: [8000, 8001] }\n" +
		"autoscaling: { enabled: true, target: { name: llama } }\n", map[string]string{
		"Deployment/llama-weir spec template spec containers epp args --endpoint-selector":     "app=llama,role=decode",
		"Deployment/llama-weir spec template spec containers epp args --endpoint-target-ports": "8000,8001",
		"Deployment/llama-weir spec template spec containers epp args --pool-name":             "absent",
		"InferencePool/llama": "absent",
		"HorizontalPodAutoscaler/llama-weir-model-servers spec metrics 0 external metric selector matchLabels": "{job: llama}",
	}},
	"a pool": {"pool: { name: chat, matchLabels: { app: llama }, targetPorts: [8000, 8001], appProtocol: kubernetes.io/h2c, failureMode: FailClose }\n" +
		"objectives: [ { name: interactive, priority: 10 }, { name: plain } ]\nobjectivesGroup: inference.networking.x-k8s.io\n" +
		"httpRoute: { enabled: true, parentRefs: [ { name: gateway } ], hostnames: [llama.example.com], matches: [ { headers: [ { name: x-model, value: llama } ] } ] }\n" +
		"autoscaling: { enabled: true, target: { apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: llama }, minReplicas: 2, maxReplicas: 20, metric: demand, requestsPerReplica: 7, behavior: { scaleUp: { stabilizationWindowSeconds: 1 } } }\n", map[string]string{
		"Deployment/llama-weir spec template spec containers epp args --pool-name": "chat",
		"InferencePool/chat spec":                               "{selector: {matchLabels: {app: llama}}, targetPorts: [{number: 8000}, {number: 8001}], appProtocol: kubernetes.io/h2c, endpointPickerRef: {name: llama-weir, port: {number: 9002}, failureMode: FailClose}}",
		"InferenceObjective/interactive apiVersion":             "inference.networking.x-k8s.io/v1alpha2",
		"InferenceObjective/interactive spec":                   "{priority: 10, poolRef: {group: inference.networking.k8s.io, name: chat}}",
		"InferenceObjective/plain spec":                         "{poolRef: {group: inference.networking.k8s.io, name: chat}}",
		"HTTPRoute/llama-weir spec":                             "{parentRefs: [{name: gateway}], hostnames: [llama.example.com], rules: [{matches: [{headers: [{name: x-model, value: llama}]}], backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: chat}], timeouts: {request: 0s, backendRequest: 0s}}]}",
		"HorizontalPodAutoscaler/llama-weir-model-servers spec": "{scaleTargetRef: {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: llama}, minReplicas: 2, maxReplicas: 20, metrics: [{type: External, external: {metric: {name: demand, selector: {matchLabels: {pool: chat}}}, target: {type: AverageValue, averageValue: \"7\"}}}], behavior: {scaleUp: {stabilizationWindowSeconds: 1}, scaleDown: {stabilizationWindowSeconds: 600}}}",
	}},
	"somebody else's pool and account": {"pool: { create: false, name: theirs, matchLabels: { app: llama } }\nserviceAccount: { create: false, name: account }\nmetrics: { prometheusRule: { enabled: true } }\n", map[string]string{
		"InferencePool/theirs":      "absent",
		"ServiceAccount/account":    "absent",
		"ServiceAccount/llama-weir": "absent",
		"Deployment/llama-weir spec template spec containers epp args --pool-name": "theirs",
		"Deployment/llama-weir spec template spec serviceAccountName":              "account",
		"RoleBinding/llama-weir subjects 0 name":                                   "account",
		"ClusterRoleBinding/inference.llama-weir-metrics-auth subjects 0 name":     "account",
	}},
	"no roles": {minimal + "rbac: { create: false }\nserviceAccount: { name: own }\n", map[string]string{
		"Role/llama-weir":                               "absent",
		"RoleBinding/llama-weir":                        "absent",
		"ClusterRole/inference.llama-weir-metrics-auth": "absent",
		"ServiceAccount/own metadata name":              "own",
	}},
	"plain text": {minimal + "tls: { enabled: false }\n", map[string]string{
		"Deployment/llama-weir spec template spec containers epp args --secure-serving":  "false",
		"Deployment/llama-weir spec template spec containers epp args --tls-min-version": "absent",
		"Service/llama-weir spec ports grpc appProtocol":                                 "kubernetes.io/h2c",
		"Service/llama-weir-replicas spec ports grpc appProtocol":                        "kubernetes.io/h2c",
	}},
	"certificates": {minimal + "tls: { secretName: weir-tls, minVersion: \"1.3\", clientCAConfigMap: gateway-ca }\n" +
		"metrics: { tls: { enabled: true, secretName: metrics-tls }, serviceMonitor: { enabled: true, interval: 5s, labels: { release: prometheus } }, auth: { readers: [ { name: prometheus, namespace: monitoring } ] } }\n", map[string]string{
		"Deployment/llama-weir spec template spec containers epp args --cert-path":              "/etc/weir-tls",
		"Deployment/llama-weir spec template spec containers epp args --tls-min-version":        "1.3",
		"Deployment/llama-weir spec template spec containers epp args --client-ca-file":         "/etc/weir-client-ca/ca.crt",
		"Deployment/llama-weir spec template spec containers epp args --metrics-secure-serving": "true",
		"Deployment/llama-weir spec template spec containers epp args --metrics-cert-path":      "/etc/weir-metrics-tls",
		"Deployment/llama-weir spec template spec containers epp volumeMounts tls":              "{name: tls, mountPath: /etc/weir-tls, readOnly: true}",
		"Deployment/llama-weir spec template spec containers epp volumeMounts client-ca":        "{name: client-ca, mountPath: /etc/weir-client-ca, readOnly: true}",
		"Deployment/llama-weir spec template spec containers epp volumeMounts metrics-tls":      "{name: metrics-tls, mountPath: /etc/weir-metrics-tls, readOnly: true}",
		"Deployment/llama-weir spec template spec volumes tls":                                  "{name: tls, secret: {secretName: weir-tls}}",
		"Deployment/llama-weir spec template spec volumes client-ca":                            "{name: client-ca, configMap: {name: gateway-ca}}",
		"Deployment/llama-weir spec template spec volumes metrics-tls":                          "{name: metrics-tls, secret: {secretName: metrics-tls}}",
		"Service/llama-weir-replicas spec ports metrics appProtocol":                            "https",
		"ServiceMonitor/llama-weir metadata labels release":                                     "prometheus",
		"ServiceMonitor/llama-weir spec": "{jobLabel: app.kubernetes.io/instance, selector: {matchLabels: " + labelsOf("weir", "epp") + "}, endpoints: [{port: metrics, interval: 5s, path: /metrics, scheme: https, " +
			"tlsConfig: {serverName: llama-weir-replicas.inference.svc, ca: {secret: {name: metrics-tls, key: ca.crt}}}, bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}]}",
		"ClusterRoleBinding/inference.llama-weir-metrics-reader subjects": "[{kind: ServiceAccount, name: prometheus, namespace: monitoring}]",
		"ClusterRoleBinding/inference.llama-weir-metrics-reader roleRef":  "{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: inference.llama-weir-metrics-reader}",
	}},
	"tracing": {minimal + "tracing: { enabled: true, endpoint: \"https://collector\", protocol: http/protobuf, sampler: traceidratio, samplerArg: \"0.1\" }\n", map[string]string{
		"Deployment/llama-weir spec template spec containers epp env OTEL_EXPORTER_OTLP_ENDPOINT value": "https://collector",
		"Deployment/llama-weir spec template spec containers epp env OTEL_EXPORTER_OTLP_PROTOCOL value": "http/protobuf",
		"Deployment/llama-weir spec template spec containers epp env OTEL_TRACES_SAMPLER value":         "traceidratio",
		"Deployment/llama-weir spec template spec containers epp env OTEL_TRACES_SAMPLER_ARG value":     "0.1",
		"Deployment/llama-weir spec template spec containers epp env OTEL_SERVICE_NAME value":           "llama-weir",
		"Deployment/llama-weir spec template spec containers epp env OTEL_RESOURCE_ATTRIBUTES value":    "k8s.namespace.name=$(NAMESPACE),k8s.pod.name=$(POD_NAME)",
	}},
	"cert-manager": {minimal + "tls: { certManager: { enabled: true, issuerRef: { name: ca, kind: ClusterIssuer, group: example.com } } }\n", map[string]string{
		"Certificate/llama-weir spec secretName": "llama-weir-tls",
		"Certificate/llama-weir spec issuerRef":  "{name: ca, kind: ClusterIssuer, group: example.com}",
		"Certificate/llama-weir spec usages":     "[server auth, digital signature, key encipherment]",
		"Certificate/llama-weir spec dnsNames": "[llama-weir.inference, llama-weir.inference.svc, llama-weir.inference.svc.cluster.local, " +
			"llama-weir-replicas.inference, llama-weir-replicas.inference.svc, llama-weir-replicas.inference.svc.cluster.local]",
		"Deployment/llama-weir spec template spec volumes tls secret secretName": "llama-weir-tls",
	}},
	"a PodMonitor": {minimal + "metrics: { tls: { enabled: true }, auth: { tokenSecret: { name: token, key: key } }, podMonitor: { enabled: true, interval: 5s, labels: { release: prometheus } } }\n", map[string]string{
		"PodMonitor/llama-weir metadata labels release": "prometheus",
		"PodMonitor/llama-weir spec": "{jobLabel: app.kubernetes.io/instance, selector: {matchLabels: " + labelsOf("weir", "epp") + "}, podMetricsEndpoints: [{port: metrics, interval: 5s, path: /metrics, scheme: https, " +
			"tlsConfig: {insecureSkipVerify: true}, authorization: {type: Bearer, credentials: {name: token, key: key}}}]}",
	}},
	"alerts": {minimal + "metrics: { prometheusRule: { enabled: true, labels: { release: prometheus }, alertLabels: { team: inference }, runbookURL: https://example.com/t } }\n", map[string]string{
		"PrometheusRule/llama-weir metadata labels release":                          "prometheus",
		"PrometheusRule/llama-weir spec groups weir rules 0 labels":                  "{severity: critical, team: inference}",
		"PrometheusRule/llama-weir spec groups weir rules 0 for":                     "2m",
		"PrometheusRule/llama-weir spec groups weir rules 0 expr":                    `(count(up{namespace="inference",job="llama"} == 1) or vector(0)) == 0`,
		"PrometheusRule/llama-weir spec groups weir rules 0 annotations runbook_url": "https://example.com/t#weirdown",
	}},
	"peers": {minimal + allPeers, map[string]string{
		"NetworkPolicy/llama-weir spec podSelector matchLabels": labelsOf("weir", "epp"),
		"NetworkPolicy/llama-weir spec ingress": "[{ports: [{port: 9002}], from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: gateways}}}]}, " +
			"{ports: [{port: 9003}], from: [{ipBlock: {cidr: 10.0.0.0/8}}, {podSelector: {matchLabels: " + labelsOf("weir", "test") + "}}]}, " +
			"{ports: [{port: 9090}], from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}]",
	}},
	"a sidecar": {minimal + "envoy: { mode: sidecar, podMonitor: { enabled: true, labels: { release: prometheus }, interval: 5s }, serviceType: NodePort, image: { repository: example.com/envoy, tag: v9, pullPolicy: Always }, resources: { limits: { memory: 1Gi } } }\n" + allPeers, map[string]string{
		"Service/llama-weir spec type":                                                          "NodePort",
		"Service/llama-weir spec ports http":                                                    "{name: http, port: 80, targetPort: 8080, appProtocol: http}",
		"Deployment/llama-weir spec template spec initContainers envoy restartPolicy":           "Always",
		"Deployment/llama-weir spec template spec initContainers envoy image":                   "example.com/envoy:v9",
		"Deployment/llama-weir spec template spec initContainers envoy imagePullPolicy":         "Always",
		"Deployment/llama-weir spec template spec initContainers envoy resources limits memory": "1Gi",
		"Deployment/llama-weir spec template spec volumes envoy configMap name":                 "llama-weir-envoy",
		"NetworkPolicy/llama-weir spec ingress 3":                                               "{ports: [{port: 8080}], from: [{podSelector: {}}]}",
		"NetworkPolicy/llama-weir spec ingress 4":                                               "{ports: [{port: 9902}], from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}",
		"PodMonitor/llama-weir-envoy metadata labels release":                                   "prometheus",
		"PodMonitor/llama-weir-envoy spec":                                                      "{selector: {matchLabels: " + labelsOf("weir", "epp") + "}, podMetricsEndpoints: [{port: envoy-stats, path: /metrics, interval: 5s, relabelings: [{targetLabel: job, replacement: llama/envoy}]}]}",
	}},
	"a PodMonitor of an Envoy": {minimal + "envoy: { mode: standalone, podMonitor: { enabled: true } }\n", map[string]string{
		"PodMonitor/llama-weir-envoy spec selector matchLabels":                 labelsOf("weir", "envoy"),
		"PodMonitor/llama-weir":                                                 "absent",
		"Deployment/llama-weir-envoy spec template spec containers envoy ports": "[{name: http, containerPort: 8080}, {name: envoy-stats, containerPort: 9902}]",
	}},
	"an Envoy of its own": {"pool: { matchLabels: { app: llama }, targetPorts: [8000, 8001] }\nimagePullSecrets: [ { name: registry } ]\n" +
		"envoy: { mode: standalone, serviceType: LoadBalancer, replicas: 3, drainSeconds: 100, image: { digest: \"sha256:" + strings.Repeat("0b", 32) + "\" } }\n" + allPeers, map[string]string{
		"Service/llama-weir spec type":                                                      "ClusterIP",
		"Service/llama-weir-envoy spec":                                                     "{type: LoadBalancer, selector: " + labelsOf("weir", "envoy") + ", ports: [{name: http, port: 80, targetPort: 8080, appProtocol: http}]}",
		"Service/llama-weir-model-servers spec":                                             "{clusterIP: None, publishNotReadyAddresses: true, selector: {app: llama}, ports: [{name: port-8000, port: 8000}, {name: port-8001, port: 8001}]}",
		"Deployment/llama-weir-envoy spec replicas":                                         "3",
		"Deployment/llama-weir-envoy spec strategy":                                         "{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
		"Deployment/llama-weir-envoy spec template spec terminationGracePeriodSeconds":      "110",
		"Deployment/llama-weir-envoy spec template spec automountServiceAccountToken":       "false",
		"Deployment/llama-weir-envoy spec template spec imagePullSecrets":                   "[{name: registry}]",
		"Deployment/llama-weir-envoy spec template spec containers envoy lifecycle preStop": "{sleep: {seconds: 100}}",
		"Deployment/llama-weir-envoy spec template spec containers envoy image":             "docker.io/envoyproxy/envoy@sha256:" + strings.Repeat("0b", 32),
		"PodDisruptionBudget/llama-weir-envoy spec selector matchLabels":                    labelsOf("weir", "envoy"),
		"NetworkPolicy/llama-weir-envoy spec ingress":                                       "[{ports: [{port: 8080}], from: [{podSelector: {}}]}, {ports: [{port: 9902}], from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}]",
		"NetworkPolicy/llama-weir spec ingress 0 from 1":                                    "{podSelector: {matchLabels: " + labelsOf("weir", "envoy") + "}}",
	}},
	"pods": {matrix["pods"] + "resources: { limits: { memory: 4Gi } }\ntests: { image: { repository: example.com/probe, tag: v1 } }\npodSecurityContext: { fsGroup: 7 }\n", map[string]string{
		"Deployment/picker spec template spec containers epp image":                                                              "ghcr.io/weir-epp/weir@sha256:" + strings.Repeat("0a", 32),
		"Deployment/picker spec template spec containers epp imagePullPolicy":                                                    "Always",
		"Deployment/picker spec template spec containers epp args --drain-timeout":                                               "300s",
		"Deployment/picker spec template spec containers epp args --v":                                                           "1",
		"Deployment/picker spec template spec containers epp args --record":                                                      "16",
		"Deployment/picker spec template spec containers epp args --hash-flow-keys":                                              "true",
		"Deployment/picker spec template spec containers epp env GOGC value":                                                     "200",
		"Deployment/picker spec template spec containers epp volumeMounts scratch mountPath":                                     "/scratch",
		"Deployment/picker spec template spec containers epp resources limits memory":                                            "4Gi",
		"Deployment/picker spec template spec volumes scratch emptyDir":                                                          "{}",
		"Deployment/picker spec template spec imagePullSecrets":                                                                  "[{name: registry}]",
		"Deployment/picker spec template spec terminationGracePeriodSeconds":                                                     "330",
		"Deployment/picker spec template spec priorityClassName":                                                                 "system-cluster-critical",
		"Deployment/picker spec template spec nodeSelector":                                                                      "{kubernetes.io/os: linux}",
		"Deployment/picker spec template spec affinity podAntiAffinity preferredDuringSchedulingIgnoredDuringExecution 0 weight": "1",
		"Deployment/picker spec template spec tolerations":                                                                       "[{key: dedicated, operator: Exists, effect: NoSchedule}]",
		"Deployment/picker spec template spec topologySpreadConstraints":                                                         "[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: " + labelsOf("picker", "epp") + "}}]",
		"Deployment/picker spec template spec securityContext fsGroup":                                                           "7",
		"Deployment/picker spec template metadata labels team":                                                                   "inference",
		"Deployment/picker spec template metadata annotations example.com/c":                                                     "d",
		"Service/picker metadata annotations":                                                                                    "{example.com/a: b}",
		"ServiceAccount/picker metadata annotations":                                                                             "{example.com/role: weir}",
		"Pod/picker-test spec containers ready image":                                                                            "example.com/probe:v1",
		"Pod/picker-test spec imagePullSecrets":                                                                                  "[{name: registry}]",
	}},
}

// labelsOf are the labels that select the pods of a component.
func labelsOf(name, component string) string {
	return fmt.Sprintf("{app.kubernetes.io/name: %s, app.kubernetes.io/instance: %s, app.kubernetes.io/component: %s}", name, release, component)
}

// Each value arrives at its destination, and adds nothing otherwise.
func TestValuesArrive(t *testing.T) {
	version := parse(t, readFile(t, chartDir+"/Chart.yaml")+"\nkind: Chart\nmetadata: { name: weir }\n").get(t, "Chart/weir").text("appVersion")
	for name, test := range reach {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := render(t, test.values)
			for at, text := range test.at {
				var want any
				if text != "absent" {
					if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "APPVERSION", version)), &want); err != nil {
						t.Fatalf("%s: %v", at, err)
					}
				}
				steps := strings.Fields(at)
				var got any
				if o, ok := all[steps[0]]; ok {
					got = follow(map[string]any(o), steps[1:])
				}
				// The apiserver checks the types (TestAPIServerTakesEverything). An argument is always a text.
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s is\n%v, want\n%v", at, got, want)
				}
			}
		})
	}
}

// follow returns the content at a path, or nil.
func follow(v any, steps []string) any {
	for _, step := range steps {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			v = element(in, step)
		default:
			return nil
		}
	}
	return v
}

// element returns the content at a step into a list.
func element(list []any, step string) any {
	if i, err := strconv.Atoi(step); err == nil {
		if i < len(list) {
			return list[i]
		}
		return nil
	}
	for _, e := range list {
		switch e := e.(type) {
		case map[string]any:
			if e["name"] == step {
				return e
			}
		case string:
			if name, value, valued := strings.Cut(e, "="); name == step {
				if !valued {
					return "true"
				}
				return value
			}
		}
	}
	return nil
}

// elsewhere are the values whose destination another test checks.
var elsewhere = []string{
	"autoscaling.kind", "autoscaling.prometheusAddress", // TestKEDAAsksForTheSame
	"config", "configChecksum", // TestConfigurationIsFollowed, TestConfigurationIsValid
	"drainMarginSeconds",                                                                                                     // TestGracePeriodIsAboveTheDrain
	"envoy.firstTokenGate",                                                                                                   // TestGateBehindTheChartsReplicas
	"grafana.dashboards.enabled", "grafana.dashboards.labels", "grafana.dashboards.annotations", "grafana.dashboards.folder", // TestDashboardsAreInstalled
	"gateway.provider", "gateway.clientPolicy", // TestUncheckedGateways, TestHeadersThatClientsMustNotSend
	"gateway.maxRequestBody", "gateway.envoyGateway.messageTimeout", "gateway.envoyGateway.responseBody",
	"gateway.envoyGateway.caConfigMap", // TestLargeBodies, TestStuckWeir, TestUsage and TestVerifiedCertificate of test/gateways
	"pool.group",                       // there is only one
	"securityContext",                  // TestContainersHaveNoPrivileges
}

// Every documented value has a destination.
func TestEveryValueArrives(t *testing.T) {
	var given []string
	for _, test := range reach {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(test.values), &values); err != nil {
			t.Fatal(err)
		}
		given = append(given, pathsIn("", values)...)
	}
	for _, v := range documentedValues(t) {
		is := func(path string) bool { return path == v.path || strings.HasPrefix(path, v.path+".") }
		if !slices.ContainsFunc(given, is) && !slices.Contains(elsewhere, v.path) {
			t.Errorf("no test gives %s another value and looks where it arrives", v.path)
		}
	}
}

// pathsIn returns the path of every value.
func pathsIn(path string, values map[string]any) (all []string) {
	for key, v := range values {
		at := strings.TrimPrefix(path+"."+key, ".")
		if inner, is := v.(map[string]any); is {
			all = append(all, pathsIn(at, inner)...)
		} else {
			all = append(all, at)
		}
	}
	return all
}
