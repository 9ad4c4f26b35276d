package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/envoyrun"
)

// servers are the model servers of the shipped files.
var servers = []string{"127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003", "127.0.0.1:8004"}

// shipped is Weir with the flags from the shipped files, and a YAML text on top of config/weir.yaml.
func shipped(t testing.TB, more string) Weir {
	t.Helper()
	text, err := os.ReadFile("../../config/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := config.Load(config.Source{Text: []byte(string(text) + more)})
	if err != nil {
		t.Fatal(err)
	}
	plain := false
	return Weir{Document: d, Port: 9002, TLS: &plain, Endpoints: servers}
}

// rendered returns a shipped configuration, changed by edit, as JSON.
func rendered(t testing.TB, name string, edit func(envoyrun.Bootstrap) error) []byte {
	t.Helper()
	b, err := envoyrun.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		if err := edit(b); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// examine returns the report about one Envoy.
func examine(t testing.TB, text []byte, w Weir) Report {
	t.Helper()
	envoys, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(envoys) != 1 {
		t.Fatalf("%d Envoys", len(envoys))
	}
	for _, path := range envoys[0].EndpointFiles() {
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := envoys[0].Assign(path, text); err != nil {
			t.Fatal(err)
		}
	}
	return Examine(envoys[0], w)
}

// ids returns the identifiers of the findings, each once.
func ids(r Report) []string {
	var all []string
	for _, f := range r.Findings {
		if !slices.Contains(all, f.ID) {
			all = append(all, f.ID)
		}
	}
	return all
}

// No shipped file has a finding, neither with its own flags of Weir nor without flags.
func TestShippedFiles(t *testing.T) {
	files, err := filepath.Glob("../../config/envoy/*.yaml")
	if err != nil || len(files) != len(envoyrun.Shipped()) {
		t.Fatalf("%v, %v", files, err)
	}
	defaults, err := config.Profile(config.DefaultProfile)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, w := range map[string]Weir{"as the file says": shipped(t, ""), "without flags": {Document: defaults}} {
			r := examine(t, text, w)
			for _, f := range r.Findings {
				t.Errorf("%s, %s: %s at %s: %s", file, name, f.ID, f.Where, f.Found)
			}
			for _, n := range r.Notes {
				if strings.Contains(n, "unknown type") || strings.Contains(n, "cannot be read") {
					t.Errorf("%s: %s", file, n)
				}
			}
		}
	}
}

const (
	weir  = envoyrun.WeirCluster
	pool  = envoyrun.ModelServersCluster
	ext   = envoyrun.ExtProcFilter
	gate  = envoyrun.GateFilter
	ttl5m = "fairRequestQueue: { queueTTL: 5m }\n"
)

// trap is a configuration with the trap of a check, and the nearest correct ones.
type trap struct {
	check  string
	also   string // another check that finds something in both; "": none
	file   string // default: recommended
	bad    edit
	good   edit
	weir   string // YAML of Weir's with the trap
	better string // and without it; "": the same
	change func(*Weir)
	repair func(*Weir)
	where  string // where the finding is, "…" at the beginning standing for what comes before
	line   string // a part of the expected line
}

// traps has, with trapsOfTrailers, at least one trap for each check.
var traps = []trap{
	{
		check: "circuit-breaker", bad: setCluster(weir, "circuit_breakers", nil), good: setCluster(weir, "circuit_breakers", breakers(1025)),
		where: "static_resources.clusters[0].circuit_breakers", line: "max_requests: 1000000",
	},
	{
		check: "circuit-breaker", bad: setCluster(pool, "circuit_breakers", breakers(1024)), good: setCluster(pool, "circuit_breakers", breakers(1025)),
		where: "static_resources.clusters[1].circuit_breakers.thresholds[0]",
	},
	{ // requests of HTTP/2 share connections, those of HTTP/1 do not
		check: "circuit-breaker", bad: setCluster(pool, "circuit_breakers", thresholds(1_000_000, 5)),
		good: setCluster(weir, "circuit_breakers", thresholds(1_000_000, 5)), where: "static_resources.clusters[1].circuit_breakers.thresholds[0]",
	},
	{ // those of a priority count for requests of that priority
		check: "circuit-breaker", bad: setRoute("priority", "HIGH"), good: setRoute("priority", "DEFAULT"),
		where: "static_resources.clusters[1].circuit_breakers",
	},
	{ // the queue has more room than the breaker
		check: "circuit-breaker", weir: "fairRequestQueue: { totalCapacity: 5000 }\n",
		bad: setCluster(weir, "circuit_breakers", breakers(4999)), good: setCluster(weir, "circuit_breakers", breakers(5000)),
		where: "static_resources.clusters[0].circuit_breakers.thresholds[0]",
	},
	{
		check: "message-timeout", weir: ttl5m, // a timeout of the TTL itself ends the request just before Weir does
		bad:   envoyrun.Edits(setFilter(ext, nil, "max_message_timeout"), setFilter(ext, "300s", "message_timeout")),
		good:  envoyrun.Edits(setFilter(ext, nil, "max_message_timeout"), setFilter(ext, "301s", "message_timeout")),
		where: "….max_message_timeout", line: "max_message_timeout: 3600s",
	},
	{ // Weir asks for the TTL and 5 s more, and Envoy ignores what is longer than it allows
		check: "message-timeout", bad: setFilter(ext, "304s", "max_message_timeout"), weir: ttl5m,
		good: setFilter(ext, "305s", "max_message_timeout"), where: "….max_message_timeout",
	},
	{ // a tier's own
		check: "message-timeout", bad: setFilter(ext, "100s", "max_message_timeout"), weir: "tiers: [{ name: sheddable, queueTimeout: 2m }]\n",
		better: "tiers: [{ name: sheddable, queueTimeout: 90s }]\n", good: setFilter(ext, "100s", "max_message_timeout"), where: "….max_message_timeout",
	},
	{
		check: "message-timeout", file: "streamed", bad: setFilter(ext, nil, "max_message_timeout"), weir: ttl5m,
		good: envoyrun.Edits( // has no such timeout
			setFilter(ext, nil, "max_message_timeout"), mode("request_body_mode", "FULL_DUPLEX_STREAMED"), mode("response_body_mode", "FULL_DUPLEX_STREAMED")),
		where: "….max_message_timeout",
	},
	{
		check: "stream-idle-timeout", bad: setManager("stream_idle_timeout", nil), weir: ttl5m, better: "fairRequestQueue: { queueTTL: 299s }\n",
		good: setManager("stream_idle_timeout", nil), where: "static_resources.listeners[0].filter_chains[0].filters[0].typed_config.stream_idle_timeout",
		line: "stream_idle_timeout: 3600s",
	},
	{
		check: "stream-idle-timeout", bad: setManager("stream_idle_timeout", "30s"), good: setManager("stream_idle_timeout", "0s"), where: "….stream_idle_timeout",
	},
	{ // a route's own
		check: "stream-idle-timeout", bad: setRoute("idle_timeout", "20s"), good: setRoute("idle_timeout", "31s"),
		where: "….route_config.virtual_hosts[0].routes[0].route.idle_timeout", line: "idle_timeout: 3600s",
	},
	{
		check: "client-destination", bad: keep("x-gateway-destination-endpoint"),
		good:  envoyrun.Edits(keep("x-gateway-destination-endpoint"), setFilter(ext, false, "failure_mode_allow")),
		where: "….http_filters[0].typed_config.mutations.request_mutations", line: "remove: x-gateway-destination-endpoint",
	},
	{ // the case of a header's name means nothing
		check: "client-destination", bad: envoyrun.Edits(keep("x-gateway-destination-endpoint"), shouted), good: shouted,
		where: "….http_filters[0].typed_config.mutations.request_mutations", line: "remove: x-gateway-destination-endpoint",
	},
	{ // an override opens a filter that is closed
		check: "client-destination", file: "fail-closed", bad: envoyrun.Edits(keep("x-gateway-destination-endpoint"), onRoute(map[string]any{"failure_mode_allow": true})),
		good:  envoyrun.Edits(keep("x-gateway-destination-endpoint"), onRoute(map[string]any{"failure_mode_allow": false})),
		where: "….request_mutations",
	},
	{ // the removal comes too late
		check: "client-destination", bad: envoyrun.Edits(keep("x-gateway-destination-endpoint"), second(func(f map[string]any) {
			f["typed_config"] = map[string]any{
				"@type":     "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
				"mutations": map[string]any{"request_mutations": []any{map[string]any{"remove": "x-gateway-destination-endpoint"}}},
			}
		})),
		good: func(b envoyrun.Bootstrap) error { // the connection manager's own
			header := envoyrun.Object(b.ConnectionManager(), "http_filters", 0, "typed_config", "mutations")["request_mutations"]
			b.ConnectionManager()["early_header_mutation_extensions"] = []any{map[string]any{"name": "early", "typed_config": map[string]any{
				"@type": "type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation", "mutations": header,
			}}}
			return envoyrun.WithoutFilter(envoyrun.HeaderFilter)(b)
		},
		where: "….request_mutations",
	},
	{
		check: "client-identity", bad: keep("x-llm-d-inference-fairness-id"), weir: "",
		good:  setsTenant("OVERWRITE_IF_EXISTS_OR_ADD"),
		where: "….request_mutations", line: "remove: x-llm-d-inference-fairness-id",
	},
	{
		check: "client-identity", bad: keep("x-gateway-model-name"), good: envoyrun.Edits(keep("x-gateway-model-name"), bodyless), where: "….request_mutations",
	},
	{ // what Weir's configuration names besides
		check: "client-identity", weir: "trustedHeaders: { cost: x-tokens }\n", better: "trustedHeaders: { cost: x-weir-cost }\n", where: "….request_mutations",
	},
	{ // tenants and their users
		check: "client-identity", weir: "flows: { levels: [ { key: [\"header:x-org\"] }, { key: [\"header:x-user\"] } ] }\n",
		better: "flows: { levels: [ { key: [\"metadata:envoy.lb/org\"] }, { key: [\"metadata:envoy.lb/sub\"] } ] }\n",
		where:  "….request_mutations",
	},
	{
		check: "client-identity", weir: "requestQueueController: { deadlineHeaders: [x-deadline] }\n",
		better: "requestQueueController: { deadlineHeaders: [x-llm-d-slo-ttft-ms] }\n", where: "….request_mutations",
	},
	{
		check: "client-identity", weir: "criticality: { header: x-urgency }\n", better: "criticality: { header: x-urgency, maxClass: Standard }\n",
		where: "….request_mutations",
	},
	{ // the model alone may come from a hop before, where there are no bodies
		check: "client-identity", bad: envoyrun.Edits(keep("x-gateway-model-name", "x-llm-d-inference-fairness-id"), bodyless),
		good: envoyrun.Edits(keep("x-gateway-model-name"), bodyless), where: "….request_mutations", line: "remove: x-llm-d-inference-fairness-id",
	},
	{ // appending leaves the client's value
		check: "client-identity", bad: setsTenant("APPEND_IF_EXISTS_OR_ADD"), good: setsTenant("OVERWRITE_IF_EXISTS_OR_ADD"), where: "….request_mutations",
	},
	{ // a filter that verifies
		check: "client-identity", file: "jwt", weir: "flows: { key: [\"header:x-sub\"] }\n",
		good: func(b envoyrun.Bootstrap) error {
			provider := envoyrun.Object(b.Filter(envoyrun.JWTFilter), "providers", "issuer")
			provider["claim_to_headers"] = []any{map[string]any{"header_name": "x-sub", "claim_name": "sub"}}
			return nil
		},
		where: "….request_mutations",
	},
	{
		check: "buffer-filter", bad: envoyrun.WithoutFilter(envoyrun.BufferFilter),
		good:  envoyrun.Edits(envoyrun.WithoutFilter(envoyrun.BufferFilter), mode("request_body_mode", "BUFFERED_PARTIAL")),
		where: "….http_filters[1]", line: "envoy.filters.http.buffer",
	},
	{ // ai_protocol_manager holds the requests of a route that declares them until they are whole
		check: "buffer-filter", bad: readsRequests(false), good: readsRequests(true), where: "….http_filters[2]",
	},
	{ // a route that goes around it
		check: "buffer-filter", bad: perRoute(map[string]any{"disabled": true}),
		good:  perRoute(map[string]any{"buffer": map[string]any{"max_request_bytes": 64 << 20}}),
		where: `….routes[0].typed_per_filter_config["envoy.filters.http.buffer"]`,
	},
	{
		check: "buffer-limit", bad: setFilter(envoyrun.BufferFilter, 1<<20, "max_request_bytes"), weir: "", better: "limits: { maxBodyBytes: 1048576 }\n",
		good: setFilter(envoyrun.BufferFilter, 1<<20, "max_request_bytes"), where: "….http_filters[1].typed_config.max_request_bytes",
	},
	{
		check: "buffer-limit", also: "buffer-filter", bad: envoyrun.Edits(envoyrun.WithoutFilter(envoyrun.BufferFilter), setListener("per_connection_buffer_limit_bytes", nil)),
		good:  envoyrun.Edits(envoyrun.WithoutFilter(envoyrun.BufferFilter), setListener("per_connection_buffer_limit_bytes", nil), mode("request_body_mode", "STREAMED")),
		where: "static_resources.listeners[0].per_connection_buffer_limit_bytes",
	},
	{
		check: "tls-to-weir", change: func(w *Weir) { w.TLS = new(true) }, good: setCluster(weir, "transport_socket", tlsSocket(nil)),
		repair: func(w *Weir) { w.TLS = new(true) }, where: "static_resources.clusters[0].transport_socket",
	},
	{
		check: "tls-to-weir", bad: setCluster(weir, "transport_socket", tlsSocket(nil)), repair: func(w *Weir) { w.TLS = nil },
		good: setCluster(weir, "transport_socket", tlsSocket(nil)), where: "static_resources.clusters[0].transport_socket",
	},
	{
		check: "tls-to-weir", change: func(w *Weir) { w.TLS, w.ClientCertificates = new(true), true }, bad: setCluster(weir, "transport_socket", tlsSocket(nil)),
		repair: func(w *Weir) { w.TLS, w.ClientCertificates = new(true), true },
		good: setCluster(weir, "transport_socket", tlsSocket(map[string]any{"tls_certificates": []any{map[string]any{
			"certificate_chain": map[string]any{"filename": "a"}, "private_key": map[string]any{"filename": "b"},
		}}})),
		where: "static_resources.clusters[0].transport_socket.typed_config.common_tls_context",
	},
	{
		check: "port-to-weir", bad: addReplica(9003), change: func(w *Weir) { w.Port = 19002 }, repair: func(w *Weir) { w.Port = 9002 }, line: "port_value: 19002",
		where: "static_resources.clusters[0].load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value",
	},
	{ // another replica may listen elsewhere
		check: "port-to-weir", change: func(w *Weir) { w.Port = 19002 }, repair: func(w *Weir) { w.Port = 19002 }, good: addReplica(19002),
		where: "….port_value",
	},
	{
		check: "endpoint-only-in-weir", change: func(w *Weir) { w.Endpoints = append(slices.Clip(servers), "10.0.0.9:8000") },
		repair: func(w *Weir) { w.Endpoints = slices.Clone(servers); w.Endpoints[0] = "[::ffff:127.0.0.1]:8001" },
		where:  "config/envoy/eds/model_servers.yaml: resources[0].endpoints[0].lb_endpoints",
	},
	{
		check: "endpoint-only-in-envoy", change: func(w *Weir) { w.Endpoints = servers[:3] }, repair: func(w *Weir) { w.Endpoints = nil },
		where: "config/envoy/eds/model_servers.yaml: resources[0].endpoints[0].lb_endpoints[3]", line: "127.0.0.1:8004",
	},
	{ // in the configuration itself
		check: "endpoint-only-in-weir", bad: static(servers[:3]...), good: static(servers...),
		where: "static_resources.clusters[1].load_assignment.endpoints[0].lb_endpoints", line: "127.0.0.1:8004",
	},
	{
		check: "endpoint-only-in-envoy", bad: static(append(slices.Clip(servers), "127.0.0.1:8005")...), good: static(servers...),
		where: "static_resources.clusters[1].load_assignment.endpoints[0].lb_endpoints[4]", line: "127.0.0.1:8005",
	},
	{
		check: "original-dst-fail-open", bad: originalDst, good: envoyrun.Edits(originalDst, setFilter(ext, false, "failure_mode_allow")),
		weir: none, better: none, where: "….failure_mode_allow",
	},
	{
		check: "original-dst-fallbacks", bad: envoyrun.Edits(originalDst, setFilter(ext, false, "failure_mode_allow")),
		good:   envoyrun.Edits(originalDst, setFilter(ext, false, "failure_mode_allow")),
		better: none, where: "static_resources.clusters[1].type",
	},
	{ // Weir's decision for the access log
		check: "metadata-not-received", bad: setFilter(ext, []any{"envoy.lb"}, "metadata_options", "receiving_namespaces", "untyped"),
		good:   setFilter(ext, []any{"envoy.lb"}, "metadata_options", "receiving_namespaces", "untyped"),
		better: "responses: { metadata: false }\n", where: "….metadata_options.receiving_namespaces.untyped", line: "untyped: [envoy.lb, weir]",
	},
	{
		check: "metadata-not-received", bad: envoyrun.Edits(metadataOnly, setFilter(ext, []any{"weir"}, "metadata_options", "receiving_namespaces", "untyped")),
		good: metadataOnly, where: "….metadata_options.receiving_namespaces.untyped",
	},
	{ // the cluster that reads a header does not need the metadata beside it
		check: "metadata-not-received", bad: envoyrun.Edits(metadataOnly, setFilter(ext, []any{"weir"}, "metadata_options", "receiving_namespaces", "untyped")),
		good: setFilter(ext, []any{"weir"}, "metadata_options", "receiving_namespaces", "untyped"), where: "….metadata_options.receiving_namespaces.untyped",
	},
	{
		check: "metadata-not-received", file: "gate", bad: setFilter(ext, nil, "metadata_options", "receiving_namespaces"), weir: "responses: { metadata: false }\n",
		where: "….metadata_options.receiving_namespaces.untyped",
	},
	{
		check: "metadata-not-forwarded", bad: setFilter(ext, []any{"envoy.lb.subset_hint"}, "metadata_options", "forwarding_namespaces", "untyped"),
		good:  setFilter(ext, []any{"envoy.lb"}, "metadata_options", "forwarding_namespaces", "untyped"), // nothing here sets the hint
		where: "….metadata_options.forwarding_namespaces.untyped", line: "untyped: [envoy.lb.subset_hint, envoy.lb]",
	},
	{
		check: "metadata-not-forwarded", bad: setFilter(ext, nil, "metadata_options", "forwarding_namespaces", "typed"), better: "cost: requests\n",
		good:  setFilter(ext, nil, "metadata_options", "forwarding_namespaces", "typed"),
		where: "….metadata_options.forwarding_namespaces.typed",
	},
	{ // the tenant of a token that Envoy has verified
		check: "metadata-not-forwarded", file: "jwt", bad: setFilter(ext, []any{"envoy.lb"}, "metadata_options", "forwarding_namespaces", "untyped"),
		good:  setFilter(ext, []any{"envoy.lb", "envoy.filters.http.jwt_authn"}, "metadata_options", "forwarding_namespaces", "untyped"),
		where: "….metadata_options.forwarding_namespaces.untyped",
	},
	{ // from Weir's own configuration, whoever sets it
		check: "metadata-not-forwarded", weir: "flows: { key: [\"metadata:tenants/name\"] }\n", better: "flows: { key: [model] }\n",
		where: "….metadata_options.forwarding_namespaces.untyped",
	},
	{
		check: "metadata-not-forwarded", file: "gate", bad: setFilter(gate, nil, "metadata_options"), where: "….http_filters[3].typed_config.metadata_options.forwarding_namespaces.untyped",
	},
	{
		check: "retry-policy", bad: setRoute("retry_policy", nil), good: setRoute("retry_policy", nil), better: none,
		where: "….routes[0].route.retry_policy", line: "connect-failure",
	},
	{
		check: "retry-policy", bad: setRoute("retry_policy", map[string]any{"retry_on": "retriable-4xx"}),
		good: setRoute("retry_policy", map[string]any{"retry_on": "retriable-4xx, connect-failure"}), where: "….routes[0].route.retry_policy",
	},
	{
		check: "retry-policy", bad: setRoute("retry_policy", map[string]any{"retry_on": "5xx", "num_retries": 0}),
		good: setRoute("retry_policy", map[string]any{"retry_on": "5xx"}), where: "….routes[0].route.retry_policy",
	},
	{ // the virtual host's counts for routes without one
		check: "retry-policy", bad: setRoute("retry_policy", nil),
		good: envoyrun.Edits(setRoute("retry_policy", nil), func(b envoyrun.Bootstrap) error {
			envoyrun.Object(b.ConnectionManager(), "route_config", "virtual_hosts", 0)["retry_policy"] = map[string]any{"retry_on": "5xx"}
			return nil
		}),
		where: "….routes[0].route.retry_policy",
	},
	{
		check: "gate-timeout", file: "gate", bad: setFilter(gate, nil, "message_timeout"), good: setFilter(gate, "60s", "message_timeout"),
		where: "….http_filters[3].typed_config.message_timeout", line: "message_timeout: 600s",
	},
	{
		check: "upstream-buffer", bad: upstream("STREAMED", nil), good: upstream("STREAMED", 256<<20),
		where: "static_resources.clusters[0].per_connection_buffer_limit_bytes",
	},
	{
		check: "upstream-buffer", bad: upstream("STREAMED", 1<<20), good: upstream("NONE", 1<<20), where: "….per_connection_buffer_limit_bytes",
	},
	{
		check: "two-filters", bad: second(func(map[string]any) {}), where: "….http_filters[3]",
		good: second(func(f map[string]any) { // for another client
			envoyrun.Object(f, "typed_config", "grpc_service", "envoy_grpc")["cluster_name"] = "guard"
			delete(envoyrun.Object(f, "typed_config", "metadata_options"), "x")
		}),
		repair: func(w *Weir) { w.Clusters = []string{weir} },
	},
	{
		check: "two-filters", bad: second(func(map[string]any) {}), good: second(func(f map[string]any) { f["disabled"] = true }), where: "….http_filters[3]",
	},
	{
		check: "usage-side", bad: moveUsage(false), good: moveUsage(true), where: "….http_filters[0].typed_config.response_handling.token_usage",
	},
	{
		check: "panic-threshold", bad: checked(nil), good: checked(panicAt(0)), where: "static_resources.clusters[0].common_lb_config.healthy_panic_threshold",
	},
	{ // without a check every host is healthy
		check: "panic-threshold", bad: checked(panicAt(10)), good: setCluster(weir, "common_lb_config", panicAt(10)), where: "….healthy_panic_threshold",
	},
}

// none is Weir without a list.
const none = "#"

// of returns Weir with a text on top; none stands for no fallbacks.
func of(t testing.TB, more string, change func(*Weir)) Weir {
	w := shipped(t, "")
	if more != "" {
		text := "profile: recommended\nscheduling: { fallbacks: 2 }\n" + more
		if more == none {
			text = "profile: recommended\nresponses: { metadata: true }\n"
		}
		d, err := config.Load(config.Source{Text: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		w.Document = d
	}
	if change != nil {
		change(&w)
	}
	return w
}

// Each trap gives its finding, at its place, and no other; the nearest correct configuration gives none.
func TestTraps(t *testing.T) {
	found := map[string]bool{}
	for i, trap := range slices.Concat(traps, trapsOfTrailers) {
		if trap.file == "" {
			trap.file = "recommended"
		}
		if trap.better == "" {
			trap.better = trap.weir
		}
		bad := examine(t, rendered(t, trap.file, trap.bad), of(t, trap.weir, trap.change))
		others := func(r Report) Report {
			r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.ID == trap.also })
			return r
		}
		bad = others(bad)
		if got := ids(bad); !slices.Equal(got, []string{trap.check}) {
			t.Errorf("%d: %s: found %v: %+v", i, trap.check, got, places(bad))
			continue
		}
		found[trap.check] = true
		first := bad.Findings[0]
		end, cut := strings.CutPrefix(trap.where, "…")
		if cut && !strings.HasSuffix(first.Where, end) || !cut && first.Where != trap.where {
			t.Errorf("%d: %s: at %s, want %s", i, trap.check, first.Where, trap.where)
		}
		if !strings.Contains(first.Change, trap.line) || first.Change == "" || first.Found == "" {
			t.Errorf("%d: %s: %q instead of %q", i, trap.check, first.Change, first.Found)
		}
		good := others(examine(t, rendered(t, trap.file, trap.good), of(t, trap.better, trap.repair)))
		if len(good.Findings) != 0 {
			t.Errorf("%d: %s: without the trap: %v", i, trap.check, places(good))
		}
	}
	for _, c := range envoyChecks() {
		if !found[c.ID] {
			t.Errorf("no trap of %s", c.ID)
		}
	}
}
