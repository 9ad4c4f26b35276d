package envoyrun

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A user's own configuration is loaded by its path, and changed in the same places.
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
		{"listener", []any{b.Listener()["address"]}, []any{socket("127.0.0.1", 18080)}},
		{"admin", []any{Object(b, "admin")["address"]}, []any{socket("127.0.0.1", 0)}},
		{"weir", endpoints(b.Cluster(WeirCluster)), []any{socket("127.0.0.1", 19002)}},
		{"model servers", []any{source(b)["path"]}, []any{"config/envoy/eds/model_servers.yaml"}},
		{"its directory", []any{Object(source(b), "watched_directory")["path"]}, []any{"config/envoy/eds"}},
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

// endpoints returns a cluster's addresses.
func endpoints(cluster map[string]any) []any {
	var addresses []any
	for _, entry := range List(cluster, "load_assignment", "endpoints", 0, "lb_endpoints") {
		addresses = append(addresses, Object(entry, "endpoint")["address"])
	}
	return addresses
}

// source returns the source of the model servers' addresses.
func source(b Bootstrap) map[string]any {
	return Object(b.Cluster(ModelServersCluster), "eds_cluster_config", "eds_config", "path_config_source")
}

// A user's own cluster that lists the model servers keeps the list. A file of endpoints replaces either form.
func TestRenderModelServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte("static_resources: { clusters: [{ name: model_servers, type: STATIC }], listeners: [{}] }\nadmin: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Options{Config: path, ModelServers: []string{"127.0.0.1:18001"}}.Render()
	if err != nil {
		t.Fatal(err)
	}
	if got := endpoints(b.Cluster(ModelServersCluster)); !reflect.DeepEqual(got, []any{socket("127.0.0.1", 18001)}) || source(b) != nil {
		t.Errorf("a cluster of one's own has %v", b.Cluster(ModelServersCluster))
	}
	for _, config := range []string{path, "direct"} {
		b, err := Options{Config: config, EndpointsFile: "/a/b.yaml"}.Render()
		if err != nil {
			t.Fatal(err)
		}
		cluster := b.Cluster(ModelServersCluster)
		if source(b)["path"] != "/a/b.yaml" || Object(source(b), "watched_directory")["path"] != "/a" || cluster["type"] != "EDS" ||
			cluster["load_assignment"] != nil || Object(b, "node")["id"] == nil {
			t.Errorf("%s: %v", config, cluster)
		}
	}
}

// Impossible options are refused before Envoy starts, by name.
func TestRenderRefuses(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Config: "no-such", Weir: "127.0.0.1:1", ModelServers: []string{"127.0.0.1:1"}}, "no-such.yaml"},
		{Options{Config: "recommended", ModelServers: []string{"127.0.0.1:1"}}, "cluster weir"},
		{Options{Config: "recommended", Weir: "127.0.0.1:1"}, "at least one model server"},
		{Options{Config: "recommended", Weir: "127.0.0.1:1", ModelServers: []string{"localhost:1"}}, "ip:port"},
		{Options{Config: "recommended", Weir: "localhost:1", ModelServers: []string{"127.0.0.1:1"}}, "ip:port"},
		{Options{Config: "direct", ModelServers: []string{"127.0.0.1:1"}, Listen: "8080"}, "listener"},
	} {
		if _, err := test.options.Render(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error is %v, want one with %q", test.options, err, test.want)
		}
	}
}

// A path that does not exist in a configuration returns nil, whatever is in the way.
func TestObjectAndList(t *testing.T) {
	b := Bootstrap{"a": []any{map[string]any{"b": map[string]any{"c": []any{"d"}}}}, "text": "t"}
	if got := Object(b, "a", 0, "b"); !reflect.DeepEqual(got, map[string]any{"c": []any{"d"}}) {
		t.Errorf("object: %v", got)
	}
	if got := List(b, "a", 0, "b", "c"); !reflect.DeepEqual(got, []any{"d"}) {
		t.Errorf("list: %v", got)
	}
	for _, path := range [][]any{{"none"}, {"text"}, {"text", "b"}, {"text", 0}, {"a", 1}, {"a", -1}, {"a", "b"}, {0}, {"none", "b", 0}} {
		if object, list := Object(b, path...), List(b, path...); object != nil || list != nil {
			t.Errorf("%v: %v, %v", path, object, list)
		}
	}
}
