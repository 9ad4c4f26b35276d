package envoyrun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every shipped file, as it is, passes Envoy's own validation.
func TestShippedFilesAreValid(t *testing.T) {
	binary, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../config/envoy/*.yaml")
	if err != nil || len(files) != len(Shipped()) {
		t.Fatalf("files %v, %v; shipped %v", files, err, Shipped())
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			check := exec.Command(binary, "--mode", "validate", "--disable-hot-restart", "--log-level", "error",
				"--config-path", "config/envoy/"+filepath.Base(file))
			check.Dir = "../.." // as the files say
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Each file says at its top how to start it, and the Weir for it, with the addresses that it has.
func TestShippedFilesSayHowToStartThem(t *testing.T) {
	for _, config := range Shipped() {
		text, err := os.ReadFile("../../config/envoy/" + config + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		b, err := Load(config)
		if err != nil {
			t.Fatal(err)
		}
		var addresses []string
		for _, address := range endpoints(b.Cluster(ModelServersCluster)) {
			at := object(address.(map[string]any), "socket_address")
			addresses = append(addresses, fmt.Sprintf("%v:%v", at["address"], at["port_value"]))
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

// Every shipped file starts with other addresses, and serves: without Weir, which is not there, what its kind says. Who
// has to show a key or a token does; the shipped token keys are nobody's.
func TestShippedFilesServe(t *testing.T) {
	address := modelServer(t, answering("served"))
	for _, config := range Shipped() {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			p.die()
			envoy := start(t, config, p, nil, address)
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

// What protects an installation is in every file, not only in the recommended one.
func TestShippedFilesProtect(t *testing.T) {
	for _, config := range Shipped() {
		t.Run(config, func(t *testing.T) {
			b, err := Load(config)
			if err != nil {
				t.Fatal(err)
			}
			clusters := []string{WeirCluster, ModelServersCluster}
			if config == "direct" {
				clusters = clusters[1:]
			}
			for _, cluster := range clusters {
				threshold := first(list(object(b.Cluster(cluster), "circuit_breakers"), "thresholds"))
				for _, breaker := range []string{"max_connections", "max_pending_requests", "max_requests"} {
					if threshold[breaker] != 1e6 {
						t.Errorf("cluster %s: %s is %v: Envoy's default refuses the 1,025th", cluster, breaker, threshold[breaker])
					}
				}
			}
			if got := b.connectionManager()["stream_idle_timeout"]; got != "3600s" {
				t.Errorf("stream_idle_timeout is %v: it counts the time in the queue", got)
			}
			if got := b.connectionManager()["stream_flush_timeout"]; got != "60s" {
				t.Errorf("stream_flush_timeout is %v: without, an answer that nobody reads holds its lease for the idle timeout", got)
			}
			if got := b.Route()["timeout"]; got != "0s" {
				t.Errorf("route timeout is %v", got)
			}
			if config == "direct" {
				return
			}
			main := b.Filter(ExtProcFilter)
			if got := object(main, "processing_mode")["response_trailer_mode"]; got != "SEND" {
				t.Errorf("response_trailer_mode is %v: the stream would not live until the answer's end", got)
			}
			if got := main["max_message_timeout"]; got != "3600s" {
				t.Errorf("max_message_timeout is %v", got)
			}
			names := b.Filters()
			call := slices.Index(names, ExtProcFilter)
			if removal := slices.Index(names, HeaderFilter); removal != 0 {
				t.Errorf("filters are %v: what clients must not say must be removed before anybody reads it", names)
			}
			for i, name := range names {
				if slices.Contains([]string{APIKeyFilter, JWTFilter}, name) && i > slices.Index(names, BufferFilter) {
					t.Errorf("filters are %v: a body must not be held before its sender is known", names)
				}
			}
			if whole := slices.Index(names, BufferFilter); (whole < 0 || whole > call) && config != "buffered-partial" {
				t.Errorf("filters are %v: a half-sent request reaches Weir", names)
			}
			if limit := b.Filter(BufferFilter)["max_request_bytes"]; limit != nil &&
				limit != b.listener()["per_connection_buffer_limit_bytes"] {
				t.Errorf("max_request_bytes is %v, the listener's buffer %v", limit, b.listener()["per_connection_buffer_limit_bytes"])
			}
			removed := list(object(b.Filter(HeaderFilter), "mutations"), "request_mutations")
			for _, header := range []string{
				destinationHeader, "x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id",
				"x-llm-d-inference-objective", "x-gateway-inference-objective", "x-gateway-model-name",
				"x-envoy-expected-rq-timeout-ms", "x-llm-d-slo-ttft-ms", "x-weir-cost",
			} {
				if header == "x-gateway-model-name" && config == "header-only" {
					continue // which is for those where a hop sets it
				}
				if !slices.ContainsFunc(removed, func(m any) bool { return m.(map[string]any)["remove"] == header }) {
					t.Errorf("a client's %s stays", header)
				}
			}
			received := list(object(object(main, "metadata_options"), "receiving_namespaces"), "untyped")
			if !slices.Contains(received, any("weir")) {
				t.Errorf("metadata is received from %v: the access log needs weir", received)
			}
		})
	}
}

// A configuration of the user's own is loaded by its path, and changed in the same places.
func TestRenderFileOfOnesOwn(t *testing.T) {
	content, err := os.ReadFile("../../config/envoy/gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Options{
		Config: path, Weir: "127.0.0.1:19002", ModelServers: []string{"127.0.0.1:18001", "[::1]:18002"}, Listen: "127.0.0.1:18080",
		Edit: func(b Bootstrap) error {
			b.Filter(GateFilter)["message_timeout"] = "1s"
			return nil
		},
	}.Render()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what      string
		got, want []any
	}{
		{"listener", []any{b.listener()["address"]}, []any{socket("127.0.0.1", 18080)}},
		{"admin", []any{object(b, "admin")["address"]}, []any{socket("127.0.0.1", 0)}},
		{"weir", endpoints(b.Cluster(WeirCluster)), []any{socket("127.0.0.1", 19002)}},
		{
			"model servers", endpoints(b.Cluster(ModelServersCluster)),
			[]any{socket("127.0.0.1", 18001), socket("::1", 18002)},
		},
		{"edit", []any{b.Filter(GateFilter)["message_timeout"]}, []any{"1s"}},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("%s: %v, want %v", test.what, test.got, test.want)
		}
	}
}

func socket(address string, port uint16) any {
	return map[string]any{"socket_address": map[string]any{"address": address, "port_value": port}}
}

// endpoints are a cluster's addresses.
func endpoints(cluster map[string]any) []any {
	var addresses []any
	for _, entry := range list(first(list(object(cluster, "load_assignment"), "endpoints")), "lb_endpoints") {
		addresses = append(addresses, object(entry.(map[string]any), "endpoint")["address"])
	}
	return addresses
}

// What cannot work is refused before Envoy is started, by name.
func TestRenderRefuses(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Config: "no-such", Weir: "127.0.0.1:1", ModelServers: []string{"127.0.0.1:1"}}, "no-such.yaml"},
		{Options{Config: "recommended", ModelServers: []string{"127.0.0.1:1"}}, "cluster weir"},
		{Options{Config: "recommended", Weir: "127.0.0.1:1"}, "at least one model server"},
		{Options{Config: "recommended", Weir: "localhost:1", ModelServers: []string{"127.0.0.1:1"}}, "ip:port"},
		{Options{Config: "direct", ModelServers: []string{"127.0.0.1:1"}, Listen: "8080"}, "listener"},
	} {
		if _, err := test.options.Render(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error is %v, want one with %q", test.options, err, test.want)
		}
	}
}
