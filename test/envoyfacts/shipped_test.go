package envoyfacts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// Every shipped file passes Envoy's own validation unchanged.
func TestShippedFilesAreValid(t *testing.T) {
	binary, err := envoyrun.Find()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../config/envoy/*.yaml")
	if err != nil || len(files) != len(envoyrun.Shipped()) {
		t.Fatalf("files %v, %v; shipped %v", files, err, envoyrun.Shipped())
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			check := exec.Command(binary, "--mode", "validate", "--disable-hot-restart", "--log-level", "error",
				"--config-path", "config/envoy/"+filepath.Base(file))
			check.Dir = "../.." // with the files' addresses
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Each file begins with the commands that start Envoy and Weir with the addresses in it.
func TestShippedFilesSayHowToStartThem(t *testing.T) {
	list, err := envoyrun.Load("../../config/envoy/eds/model_servers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, server := range envoyrun.List(list, "resources", 0, "endpoints", 0, "lb_endpoints") {
		at := envoyrun.Object(server, "endpoint", "address", "socket_address")
		addresses = append(addresses, fmt.Sprintf("%v:%v", at["address"], at["port_value"]))
	}
	if len(addresses) != 4 {
		t.Fatalf("the addresses are %q", addresses)
	}
	for _, config := range envoyrun.Shipped() {
		text, err := os.ReadFile("../../config/envoy/" + config + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		wanted := []string{"#     envoy -c config/envoy/" + config + ".yaml\n"}
		if config != "direct" {
			wanted = append(wanted, "#     bin/epp --config-file=config/weir.yaml --secure-serving=false \\\n"+
				"#       --endpoints="+strings.Join(addresses, ",")+"\n")
		}
		for _, want := range wanted {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not say %q", config, want)
			}
		}
	}
}

// Every shipped file starts with other addresses. Without Weir it serves by its failure mode, for clients with its key
// or token. The shipped token keys have no owner. Its config dump has no trap.
func TestShippedFilesServe(t *testing.T) {
	address := modelServer(t, answering("served"))
	for _, config := range envoyrun.Shipped() {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			p.die()
			envoy := start(t, config, p, nil, address)
			envoy.wantTraps(t, []string{address})
			switch config {
			case "fail-closed":
				envoy.post(t, "").wantError(503, "unavailable")
			case "api-keys":
				envoy.post(t, "").wantError(401, "unauthenticated")
				envoy.post(t, "", "authorization", "Bearer example-key-of-team-a").want(200, "served")
			case "jwt":
				envoy.post(t, "").wantError(401, "unauthenticated")
			default:
				envoy.post(t, "").want(200, "served")
			}
		})
	}
}

// Each shipped file, and not only the recommended one, has all settings that protect an installation.
func TestShippedFilesProtect(t *testing.T) {
	for _, config := range envoyrun.Shipped() {
		t.Run(config, func(t *testing.T) {
			b, err := envoyrun.Load(config)
			if err != nil {
				t.Fatal(err)
			}
			clusters := []string{envoyrun.WeirCluster, envoyrun.ModelServersCluster}
			if config == "direct" {
				clusters = clusters[1:]
			}
			for _, cluster := range clusters {
				threshold := envoyrun.Object(b.Cluster(cluster), "circuit_breakers", "thresholds", 0)
				for _, breaker := range []string{"max_connections", "max_pending_requests", "max_requests"} {
					if threshold[breaker] != 1e6 {
						t.Errorf("cluster %s: %s is %v: Envoy's default refuses the 1,025th", cluster, breaker, threshold[breaker])
					}
				}
			}
			if got := b.ConnectionManager()["stream_idle_timeout"]; got != "3600s" {
				t.Errorf("stream_idle_timeout is %v: it counts the time in the queue", got)
			}
			if got := b.ConnectionManager()["stream_flush_timeout"]; got != "60s" {
				t.Errorf("stream_flush_timeout is %v: without it, an unread answer holds its lease for the idle timeout", got)
			}
			for i, route := range envoyrun.List(b.ConnectionManager(), "route_config", "virtual_hosts", 0, "routes") {
				if got := envoyrun.Object(route, "route")["timeout"]; got != "0s" && envoyrun.Object(route, "direct_response") == nil {
					t.Errorf("the timeout of route %d is %v", i, got)
				}
			}
			if config == "direct" {
				return
			}
			main := b.Filter(envoyrun.ExtProcFilter)
			if got := envoyrun.Object(main, "processing_mode")["response_trailer_mode"]; got != "SEND" {
				t.Errorf("response_trailer_mode is %v: the stream would not live until the answer's end", got)
			}
			if got := main["max_message_timeout"]; got != "3600s" {
				t.Errorf("max_message_timeout is %v", got)
			}
			names := b.Filters()
			call := slices.Index(names, envoyrun.ExtProcFilter)
			if removal := slices.Index(names, envoyrun.HeaderFilter); removal != 0 {
				t.Errorf("filters are %v: the removal of clients' headers must come before their readers", names)
			}
			for i, name := range names {
				if slices.Contains([]string{envoyrun.APIKeyFilter, envoyrun.JWTFilter}, name) && i > slices.Index(names, envoyrun.BufferFilter) {
					t.Errorf("filters are %v: a body must not be held before its sender is known", names)
				}
			}
			if whole := slices.Index(names, envoyrun.BufferFilter); (whole < 0 || whole > call) && config != "buffered-partial" {
				t.Errorf("filters are %v: a half-sent request reaches Weir", names)
			}
			if limit := b.Filter(envoyrun.BufferFilter)["max_request_bytes"]; limit != nil &&
				limit != b.Listener()["per_connection_buffer_limit_bytes"] {
				t.Errorf("max_request_bytes is %v, the listener's buffer %v", limit, b.Listener()["per_connection_buffer_limit_bytes"])
			}
			removed := envoyrun.List(b.Filter(envoyrun.HeaderFilter), "mutations", "request_mutations")
			for _, header := range []string{
				destinationHeader, "x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id",
				"x-llm-d-inference-objective", "x-gateway-inference-objective", "x-gateway-model-name",
				"x-envoy-expected-rq-timeout-ms", "x-llm-d-slo-ttft-ms", "x-weir-cost",
				"x-prefiller-host-port", "x-encoder-hosts-ports", "x-data-parallel-host-port",
			} {
				if header == "x-gateway-model-name" && config == "header-only" {
					continue // it is for installations where a hop sets it
				}
				if !slices.ContainsFunc(removed, func(m any) bool { return envoyrun.Object(m)["remove"] == header }) {
					t.Errorf("a client's %s stays", header)
				}
			}
			received := envoyrun.List(main, "metadata_options", "receiving_namespaces", "untyped")
			if !slices.Contains(received, any("weir")) {
				t.Errorf("metadata is received from %v: the access log needs weir", received)
			}
		})
	}
}
