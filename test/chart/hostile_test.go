package chart

import (
	"strings"
	"testing"
)

// envoyGatewayOf is an installation for Envoy Gateway.
const envoyGatewayOf = minimal + toGateway + "gateway: { provider: envoy-gateway }\n"

// An impossible value is an error with its key and the reason.
func TestHostileValues(t *testing.T) {
	for name, test := range map[string]struct{ values, key, want string }{
		"nothing":                {"", "pool.matchLabels", "must have a label"},
		"unknown key":            {minimal + "replicaz: 2\n", "replicaz", "additional properties"},
		"unknown inner key":      {"pool: { matchLabels: { app: llama }, targetPort: 8000 }\n", "targetPort", "additional properties"},
		"a text for a number":    {minimal + "replicas: two\n", "replicas", "got string, want integer"},
		"a number for a text":    {minimal + "image: { tag: 1.5 }\n", "image/tag", "got number, want string"},
		"a section gone":         {minimal + "leaderElection: null\n", "leaderElection", "missing property"},
		"a pool gone":            {"pool: null\n", "pool", "missing property"},
		"a port beyond":          {"pool: { matchLabels: { app: llama }, targetPorts: [65536] }\n", "pool/targetPorts/0", "maximum"},
		"nine ports":             {"pool: { matchLabels: { app: llama }, targetPorts: [1, 2, 3, 4, 5, 6, 7, 8, 9] }\n", "pool/targetPorts", "maxItems"},
		"no port":                {"pool: { matchLabels: { app: llama }, targetPorts: [] }\n", "pool/targetPorts", "minItems"},
		"a port twice":           {"pool: { matchLabels: { app: llama }, targetPorts: [80, 80] }\n", "pool/targetPorts", "equal"},
		"labels with a comma":    {"pool: { matchLabels: { app: \"a,b=c\" } }\n", "pool/matchLabels/app", "does not match pattern"},
		"a label with a newline": {"pool: { matchLabels: { app: \"a\\nb\" } }\n", "pool/matchLabels/app", "does not match pattern"},
		"a name with YAML in it": {"pool: { matchLabels: { app: llama }, name: \"x\\nspec: {}\" }\n", "pool/name", "does not match pattern"},
		"an image with YAML":     {minimal + "image: { repository: \"a\\nhostNetwork: true\" }\n", "image/repository", "does not match pattern"},
		"a digest too short":     {minimal + "image: { digest: sha256:0 }\n", "image/digest", "does not match pattern"},
		"a duration without unit": {
			minimal + "leaderElection: { leaseDuration: \"15\" }\n", "leaderElection/leaseDuration", "does not match pattern",
		},
		"an unknown source":  {"pool: { source: Service, matchLabels: { app: llama } }\n", "pool/source", "one of 'InferencePool', 'Selector'"},
		"an unknown mode":    {minimal + "envoy: { mode: daemonset }\n", "envoy/mode", "one of"},
		"a policy of nobody": {minimal + "networkPolicy: { enabled: true, gateways: [ {} ] }\n", "networkPolicy/gateways/0", "minProperties"},
		"an argument that is none": {
			minimal + "extraArgs: [ \"serve now\" ]\n", "extraArgs/0", "does not match pattern",
		},
		"an argument of the chart": {minimal + "extraArgs: [ --drain-timeout=1h ]\n", "extraArgs", "--drain-timeout=1h: is set already"},
		"a lease of nothing":       {minimal + "leaderElection: { leaseDuration: 0s }\n", "leaderElection/leaseDuration", "does not match pattern"},
		"a lease of parts":         {minimal + "leaderElection: { leaseDuration: 1500ms }\n", "leaderElection/leaseDuration", "does not match pattern"},
		"retries too rare":         {minimal + "leaderElection: { leaseDuration: 3s }\n", "leaderElection.retryPeriod", "2s: must be at most half"},
		"traces to nowhere":        {minimal + "tracing: { enabled: true }\n", "tracing.endpoint", "must be the URL of the collector"},
		"a collector without URL":  {minimal + "tracing: { enabled: true, endpoint: \"collector:4317\" }\n", "tracing/endpoint", "does not match pattern"},
		"an unknown sampler":       {minimal + "tracing: { sampler: often }\n", "tracing/sampler", "one of"},
		"a share above 1":          {minimal + "tracing: { sampler: traceidratio, samplerArg: \"1.5\" }\n", "tracing/samplerArg", "does not match pattern"},
		"a share of nothing":       {minimal + "tracing: { samplerArg: \"0.5\" }\n", "tracing.samplerArg", "0.5: has no use"},
		"a day of takeover":        {minimal + "takeoverWindow: 24h\n", "takeoverWindow", "does not match pattern"},
		"a name with two dots":     {"pool: { matchLabels: { app: llama }, name: a..b }\n", "pool/name", "does not match pattern"},
		"another source":           {minimal + "extraArgs: [ \"--endpoints=10.0.0.1:80\" ]\n", "extraArgs", "--endpoints=10.0.0.1:80: is set already"},
		"a label of the selector":  {minimal + "podLabels: { app.kubernetes.io/component: x }\n", "podLabels", "app.kubernetes.io/component: is a label"},
		"the leader's label":       {minimal + "podLabels: { weir.dev/leader: \"true\" }\n", "podLabels", "weir.dev/leader: is a label"},
		"a margin too small":       {minimal + "drainMarginSeconds: 0\n", "drainMarginSeconds", "minimum"},
		"selector without labels":  {"pool: { source: Selector }\n", "pool.matchLabels", "must have a label"},
		"existing pool without name": {
			"pool: { create: false }\n", "pool.name", "must be the InferencePool that exists",
		},
		"a route to a selector": {
			"pool: { source: Selector, matchLabels: { app: llama } }\nhttpRoute: { enabled: true, parentRefs: [ { name: g } ] }\n",
			"httpRoute.enabled", "leads to an InferencePool",
		},
		"a route to no gateway":   {minimal + "httpRoute: { enabled: true }\n", "httpRoute.parentRefs", "must name a Gateway"},
		"objectives of no pool":   {"pool: { source: Selector, matchLabels: { app: llama } }\nobjectives: [ { name: a } ]\n", "objectives", "need an InferencePool"},
		"an objective of no name": {minimal + "objectives: [ { priority: 1 } ]\n", "objectives/0", "missing property 'name'"},
		"a priority of no number": {minimal + "objectives: [ { name: a, priority: high } ]\n", "objectives/0/priority", "want integer"},
		"nobody's account":        {minimal + "serviceAccount: { create: false }\n", "serviceAccount.name", "must be the service account"},
		"cert-manager, plaintext": {
			minimal + "tls: { enabled: false, certManager: { enabled: true, issuerRef: { name: ca } } }\n", "tls.certManager.enabled", "has no use",
		},
		"cert-manager, no issuer":     {minimal + "tls: { certManager: { enabled: true } }\n", "tls.certManager.issuerRef.name", "must be the issuer"},
		"client CA, plaintext":        {minimal + "tls: { enabled: false, clientCAConfigMap: a }\n", "tls.clientCAConfigMap", "has no use"},
		"client CA, own Envoy":        {minimal + "tls: { clientCAConfigMap: a }\nenvoy: { mode: sidecar }\n", "tls.clientCAConfigMap", "has no client certificate"},
		"client CA, Envoy Gateway":    {envoyGatewayOf + "tls: { clientCAConfigMap: a }\n", "tls.clientCAConfigMap", "gateway.provider must not be envoy-gateway"},
		"client CA, Istio":            {minimal + toGateway + "gateway: { provider: istio }\ntls: { clientCAConfigMap: a }\n", "tls.clientCAConfigMap", "gateway.provider must not be istio"},
		"annotations with auth":       {minimal + "metrics: { scrapeAnnotations: true }\n", "metrics.scrapeAnnotations", "metrics.auth.enabled must be false"},
		"PodMonitor without a token":  {minimal + "metrics: { podMonitor: { enabled: true } }\n", "metrics.auth.tokenSecret", "must be given"},
		"half a token":                {minimal + "metrics: { auth: { tokenSecret: { name: a } } }\n", "metrics/auth/tokenSecret", "missing property 'key'"},
		"a PodMonitor of no Envoy":    {minimal + "envoy: { podMonitor: { enabled: true } }\n", "envoy.podMonitor.enabled", "envoy.mode is none"},
		"two monitors":                {minimal + "metrics: { auth: { enabled: false }, podMonitor: { enabled: true }, serviceMonitor: { enabled: true } }\n", "metrics.podMonitor.enabled", "scraped twice"},
		"autoscaling of nothing":      {minimal + "autoscaling: { enabled: true }\n", "autoscaling.target.name", "must be the Deployment"},
		"autoscaling, least and most": {minimal + "autoscaling: { enabled: true, target: { name: a }, minReplicas: 5, maxReplicas: 2 }\n", "autoscaling.minReplicas", "5: must be at most"},
		"Envoy for unknown pods":      {"pool: { create: false, name: theirs }\nenvoy: { mode: sidecar }\n", "pool.matchLabels", "by which the Envoy"},
		"an unknown gateway":          {minimal + toGateway + "gateway: { provider: nginx }\n", "gateway/provider", "one of"},
		"a gateway without a route":   {minimal + "gateway: { provider: envoy-gateway }\n", "httpRoute.enabled", "must be true, since gateway.provider is envoy-gateway"},
		"a gateway beside Envoy":      {minimal + toGateway + "envoy: { mode: sidecar }\ngateway: { provider: istio }\n", "gateway.provider", "envoy.mode must be none"},
		"a gateway for unknown pods":  {"pool: { create: false, name: theirs }\n" + toGateway + "gateway: { provider: envoy-gateway }\n", "pool.matchLabels", "by which Envoy Gateway"},
		"GKE without a pool":          {"pool: { source: Selector, matchLabels: { app: llama } }\ngateway: { provider: gke }\n", "gateway.provider", "attach to an InferencePool"},
		"a timeout of the TTL":        {envoyGatewayOf + "config: { fairRequestQueue: { queueTTL: 1m } }\n", "gateway.envoyGateway.messageTimeout", "60s: must be above"},
		"a timeout below a tier's":    {envoyGatewayOf + "config: { tiers: [ { name: sheddable, queueTimeout: 1m0.5s } ] }\n", "gateway.envoyGateway.messageTimeout", "60s: must be above"},
		"a timeout below a profile's": {envoyGatewayOf + "config: { profile: smg-priority }\n", "gateway.envoyGateway.messageTimeout", "60s: must be above every queueTTL and queueTimeout, of which the longest is 300 s"},
		"a TTL in snake case":         {envoyGatewayOf + "config: { fair_request_queue: { queue_ttl: 90s } }\n", "gateway.envoyGateway.messageTimeout", "is 90 s"},
		"a TTL as an argument":        {envoyGatewayOf + "extraArgs: [ --queue-ttl=2m ]\n", "gateway.envoyGateway.messageTimeout", "is 120 s"},
		"a TTL in two arguments":      {envoyGatewayOf + "extraArgs: [ --queue-ttl, 2m ]\n", "extraArgs/1", "'2m' does not match pattern"},
		"the last of two TTLs":        {envoyGatewayOf + "extraArgs: [ --queue-ttl=1s, --queue-ttl=2m ]\n", "gateway.envoyGateway.messageTimeout", "is 120 s"},
		"a profile as an argument":    {envoyGatewayOf + "extraArgs: [ --profile=smg-priority ]\n", "gateway.envoyGateway.messageTimeout", "is 300 s"},
		"a pool as an argument":       {minimal + "extraArgs: [ --pool-name=a ]\n", "extraArgs", "--pool-name=a: is set already"},
		"a variable of the chart's":   {minimal + "extraEnv: [ { name: POD_IP, value: a } ]\n", "extraEnv", "POD_IP: is set already"},
		"a variable twice":            {minimal + "extraEnv: [ { name: A, value: a }, { name: A, value: b } ]\n", "extraEnv", "A: is set already"},
		"a profile that preempts":     {minimal + toGateway + "gateway: { provider: agentgateway }\nconfig: { profile: smg-priority }\n", "config.tiers", "canPreempt must be false"},
		"one tier of two that preempt": {
			minimal + toGateway + "gateway: { provider: agentgateway }\nconfig: { profile: smg-priority, tiers: [ { name: system, canPreempt: false } ] }\n", "config.tiers", "interactive: canPreempt must be false",
		},
		"preemption of a tier that stays": {
			minimal + toGateway + "gateway: { provider: agentgateway }\nconfig: { profile: smg-priority, replaceTiers: true, tiers: [ { name: system }, { name: bulk } ] }\n", "config.tiers", "system: canPreempt must be false",
		},
		"all of an answer, fail open": {minimal + toGateway + "gateway: { provider: envoy-gateway, envoyGateway: { responseBody: FullDuplexStreamed } }\n", "gateway.envoyGateway.responseBody", "needs pool.failureMode FailClose"},
		"preemption that frees nothing": {
			minimal + toGateway + "gateway: { provider: agentgateway }\nconfig: { tiers: [ { name: critical, canPreempt: true } ] }\n", "config.tiers", "critical: canPreempt must be false",
		},
		"more addresses than one": {
			minimal + toGateway + "gateway: { provider: agentgateway }\nconfig: { scheduling: { fallbacks: 2 } }\n", "config.scheduling.fallbacks", "must be 0",
		},
		"a body of no size":   {minimal + "gateway: { maxRequestBody: 1.5Gi }\n", "gateway/maxRequestBody", "does not match pattern"},
		"a body of 4 GiB":     {minimal + "gateway: { maxRequestBody: 4Gi }\n", "gateway/maxRequestBody", "does not match pattern"},
		"a body of 4,096 MiB": {minimal + "gateway: { maxRequestBody: 4096Mi }\n", "gateway/maxRequestBody", "does not match pattern"},
		"an hour and more":    {minimal + "gateway: { envoyGateway: { messageTimeout: 61m } }\n", "gateway/envoyGateway/messageTimeout", "does not match pattern"},
		"an hour and a second": {
			minimal + "gateway: { envoyGateway: { messageTimeout: 3601s } }\n", "gateway/envoyGateway/messageTimeout", "does not match pattern",
		},
		"KEDA, no Prometheus": {minimal + "autoscaling: { enabled: true, kind: ScaledObject, target: { name: a } }\n", "autoscaling.prometheusAddress", "must be the URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := template(t, test.values)
			if err == nil {
				t.Fatal("it renders")
			}
			message := strings.Join(strings.Fields(err.Error()), " ")
			if !strings.Contains(message, test.key) || !strings.Contains(message, test.want) {
				t.Errorf("the error does not say %q of %q:\n%s", test.want, test.key, message)
			}
		})
	}
}

// A variable of tracing that is also in extraEnv is there once, with the value of extraEnv. The others stay.
func TestExtraEnvGoesFirst(t *testing.T) {
	text, err := template(t, minimal+"tracing: { enabled: true, endpoint: \"http://collector:4317\" }\nextraEnv: [ { name: OTEL_TRACES_SAMPLER, value: mine } ]\n")
	if err != nil {
		t.Fatal(err)
	}
	for line, n := range map[string]int{
		"name: OTEL_TRACES_SAMPLER\n": 1, "value: mine\n": 1, "name: OTEL_SERVICE_NAME\n": 1, "name: OTEL_EXPORTER_OTLP_ENDPOINT\n": 1,
	} {
		if got := strings.Count(text, line); got != n {
			t.Errorf("%q: %d times, want %d", line, got, n)
		}
	}
}
