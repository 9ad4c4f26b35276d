package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// The chart's copies of Envoy's configurations are the ones tested on the wire.
func TestEnvoyFilesAreTheShippedOnes(t *testing.T) {
	for copied, shipped := range map[string]string{"envoy.yaml": "recommended.yaml", "envoy-gate.yaml": "gate.yaml"} {
		if readFile(t, chartDir+"/files/"+copied) != readFile(t, "../../config/envoy/"+shipped) {
			t.Errorf("charts/weir/files/%s differs from config/envoy/%s: copy it", copied, shipped)
		}
	}
}

// The chart changes the addresses of Weir and of the model servers in it, and nothing else.
func TestEnvoyDiffersByAddressesOnly(t *testing.T) {
	for name, test := range map[string]struct {
		values  string
		weir    []string // fields of the cluster of Weir that differ
		servers []string
		address string
	}{
		"sidecar":           {"envoy: { mode: sidecar }\n", []string{"transport_socket"}, fromDNS, "127.0.0.1"},
		"sidecar plaintext": {"envoy: { mode: sidecar }\ntls: { enabled: false }\n", nil, fromDNS, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			file := envoyConfig(t, render(t, minimal, test.values))
			got, err := envoyrun.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := envoyrun.Load("recommended")
			if err != nil {
				t.Fatal(err)
			}
			address := envoyrun.Object(got.Cluster(envoyrun.WeirCluster), "load_assignment", "endpoints", 0, "lb_endpoints", 0, "endpoint", "address", "socket_address")
			if address["address"] != test.address || address["port_value"] != 9002.0 {
				t.Errorf("Weir is at %v, want %s:9002", address, test.address)
			}
			without(got.Cluster(envoyrun.WeirCluster), want.Cluster(envoyrun.WeirCluster), append(test.weir, "load_assignment"))
			without(got.Cluster(envoyrun.ModelServersCluster), want.Cluster(envoyrun.ModelServersCluster), append(test.servers, "load_assignment", "eds_cluster_config"))
			if !reflect.DeepEqual(got, want) {
				g, _ := json.MarshalIndent(got, "", " ")
				w, _ := json.MarshalIndent(want, "", " ")
				t.Errorf("the rest differs; got\n%s\nwant\n%s", g, w)
			}
		})
	}
}

// fromDNS are the fields of a cluster with endpoints from DNS.
var fromDNS = []string{"type", "dns_lookup_family", "dns_refresh_rate"}

func without(a, b map[string]any, keys []string) {
	for _, key := range keys {
		delete(a, key)
		delete(b, key)
	}
}

// The standalone Envoy checks whether each replica is the one for gateways, and never sends requests to another one. It
// has each port of the model servers and their protocol, and restarts with another configuration.
func TestEnvoyKnowsTheLeaderAndTheModelServers(t *testing.T) {
	const standalone = "envoy: { mode: standalone }\n"
	all := render(t, "pool: { matchLabels: { app: llama }, targetPorts: [8000, 8001], appProtocol: kubernetes.io/h2c }\n", standalone)
	config, err := envoyrun.Load(envoyConfig(t, all))
	if err != nil {
		t.Fatal(err)
	}
	weir, servers := config.Cluster(envoyrun.WeirCluster), config.Cluster(envoyrun.ModelServersCluster)
	shipped, err := envoyrun.Load("recommended")
	if err != nil {
		t.Fatal(err)
	}
	if got := envoyrun.Object(weir, "cluster_type", "typed_config")["clusters"]; !reflect.DeepEqual(got, []any{"weir_leader", "weir_replicas"}) {
		t.Errorf("Envoy uses the clusters %v, in this order", got)
	}
	like := shipped.Cluster(envoyrun.WeirCluster)
	for name, service := range map[string]string{"weir_leader": "readiness", "weir_replicas": "synced"} {
		cluster := config.Cluster(name)
		if got := envoyrun.Object(cluster, "health_checks", 0, "grpc_health_check")["service_name"]; got != service {
			t.Errorf("%s asks for the health service %v, want %s", name, got, service)
		}
		if got := envoyrun.Object(cluster, "common_lb_config", "healthy_panic_threshold")["value"]; got != 0.0 {
			t.Errorf("%s panics below %v %% of healthy replicas", name, got)
		}
		without(cluster, like, append([]string{
			"name", "transport_socket", "health_checks", "common_lb_config", "load_assignment",
		}, fromDNS...))
		if !reflect.DeepEqual(cluster, like) {
			t.Errorf("%s differs from the shipped one: %v", name, cluster)
		}
	}
	var ports []any
	for _, e := range envoyrun.Object(servers, "load_assignment", "endpoints", 0)["lb_endpoints"].([]any) {
		ports = append(ports, envoyrun.Object(e, "endpoint", "address", "socket_address")["port_value"])
	}
	if fmt.Sprint(ports) != "[8000 8001]" {
		t.Errorf("Envoy knows the ports %v", ports)
	}
	options := envoyrun.Object(servers, "typed_extension_protocol_options", "envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config")
	if options["http2_protocol_options"] == nil {
		t.Errorf("Envoy speaks %v to model servers", options)
	}
	// Listeners with their filters and timeouts, and everything else, are the tested ones.
	for _, b := range []envoyrun.Bootstrap{config, shipped} {
		delete(envoyrun.Object(b, "static_resources"), "clusters")
	}
	if !reflect.DeepEqual(config, shipped) {
		t.Error("the rest of Envoy's configuration differs from the shipped one")
	}
	if got := config.Filter(envoyrun.ExtProcFilter)["message_timeout"]; got != "60s" {
		t.Errorf("the rendered message_timeout is %v: a burst of large bodies goes past Weir", got)
	}
	checksum := func(all objects) string {
		return all.get(t, "Deployment/llama-weir-envoy").text("spec", "template", "metadata", "annotations", "checksum/config")
	}
	if checksum(all) == checksum(render(t, minimal, standalone)) {
		t.Error("another configuration does not restart Envoy")
	}
}

// envoyConfig writes Envoy's configuration out of its ConfigMap, and returns the file.
func envoyConfig(t *testing.T, all objects) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "envoy.json")
	text := all.get(t, "ConfigMap/"+all.deployment(t).name()+"-envoy").text("data", "envoy.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A real Envoy serves with it: the standalone one, with its health checks of Weir, and the sidecar. Only the names in
// DNS are replaced by addresses.
func TestEnvoyServes(t *testing.T) {
	for _, mode := range []string{"sidecar", "standalone"} {
		t.Run(mode, func(t *testing.T) {
			all := render(t, minimal, "envoy: { mode: "+mode+" }\ntls: { enabled: false }\n")
			s := scene.New(context.Background(), t.TempDir())
			t.Cleanup(func() { _ = s.Close() })
			models, err := s.Models(2, modelsim.Instant())
			if err != nil {
				t.Fatal(err)
			}
			epp, err := s.EPP(scene.EPPOptions{
				Name: "epp", Binary: binaries.Path(binaries.EPP), Endpoints: models, Flags: []string{"--profile=recommended"},
			})
			if err != nil {
				t.Fatal(err)
			}
			envoy, err := s.Envoy("envoy", envoyrun.Options{Config: envoyConfig(t, all), Weir: epp.Address, ModelServers: models})
			if err != nil {
				t.Fatal(err)
			}
			// Until the first health check has passed, requests bypass Weir.
			expect.True(t, "a request passes through Weir", func() bool {
				chat(t, envoy.URL(), false)
				return counted.MatchString(expect.Page(t, epp.MetricsURL+"/metrics"))
			})
		})
	}
}

// chat sends a request, and reads its whole answer.
func chat(t *testing.T, url string, streamed bool) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"hello"}]}`, streamed)
	if err := expect.Post(t.Context(), url+"/v1/chat/completions", body).Served(); err != nil {
		t.Fatal(err)
	}
}

var counted = regexp.MustCompile(`(?m)^weir_requests_total\{outcome="dispatched"\} [1-9]`)

// With the first-token gate and three serving replicas, the rendered Envoy connects each gate with its request.
func TestGateBehindTheChartsReplicas(t *testing.T) {
	rendered := render(t, minimal, "envoy: { mode: standalone, firstTokenGate: true }\ntls: { enabled: false }\n")
	s := scene.New(context.Background(), t.TempDir())
	t.Cleanup(func() { _ = s.Close() })
	models, err := s.Models(2, modelsim.Instant())
	if err != nil {
		t.Fatal(err)
	}
	var epps []*scene.EPP
	var addresses []string
	for i := range 3 {
		epp, err := s.EPP(scene.EPPOptions{
			Name: fmt.Sprint("epp", i), Binary: binaries.Path(binaries.EPP), Endpoints: models, Flags: []string{"--profile=recommended"},
		})
		if err != nil {
			t.Fatal(err)
		}
		epps, addresses = append(epps, epp), append(addresses, epp.Address)
	}
	envoy, err := s.Envoy("envoy", envoyrun.Options{Config: envoyConfig(t, rendered), Weir: strings.Join(addresses, ","), ModelServers: models})
	if err != nil {
		t.Fatal(err)
	}
	// all returns the number of replicas whose gates have seen a first token, and of gates without their request.
	all := func() (seen, unknown int) {
		for _, e := range epps {
			page := expect.Page(t, e.MetricsURL+"/metrics")
			if timed.MatchString(page) {
				seen++
			}
			n, err := strconv.Atoi(strangers.FindStringSubmatch(page)[1])
			if err != nil {
				t.Fatal(err)
			}
			unknown += n
		}
		return seen, unknown
	}
	// For a second after a change of a replica's health Envoy may send the two streams of a request to different
	// replicas.
	expect.Eventually(t, "each gate knows its request", func() error {
		_, before := all()
		for range 30 {
			chat(t, envoy.URL(), true)
		}
		seen, after := all()
		if seen == len(epps) && after == before {
			return nil
		}
		return fmt.Errorf("gates of %d of %d replicas have seen a first token, and %d of the last 30 do not know their request", seen, len(epps), after-before)
	})
}

var strangers = regexp.MustCompile(`(?m)^weir_gate_unknown_total (\d+)$`)

var timed = regexp.MustCompile(`(?m)^weir_extproc_time_to_first_token_seconds_count.* [1-9]`)
