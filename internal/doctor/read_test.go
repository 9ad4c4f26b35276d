package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// dumped returns a bootstrap in the form of Envoy's /config_dump: static resources twice, in the bootstrap and in parts
// of their own, with a type each.
func dumped(t testing.TB, bootstrap []byte) map[string]any {
	t.Helper()
	var b map[string]any
	if err := json.Unmarshal(bootstrap, &b); err != nil {
		t.Fatal(err)
	}
	typed := func(kind string, of map[string]any) map[string]any {
		own := map[string]any{"@type": "type.googleapis.com/envoy.config." + kind}
		maps.Copy(own, of)
		return own
	}
	var listeners, clusters, routes, endpoints []any
	for _, l := range envoyrun.List(b, "static_resources", "listeners") {
		manager := envoyrun.Object(l, "filter_chains", 0, "filters", 0, "typed_config")
		config := envoyrun.Object(manager, "route_config")
		delete(manager, "route_config")
		manager["rds"] = map[string]any{"route_config_name": config["name"], "config_source": map[string]any{"ads": map[string]any{}}}
		routes = append(routes, map[string]any{"route_config": typed("route.v3.RouteConfiguration", config)})
		listeners = append(listeners, map[string]any{"name": "a", "active_state": map[string]any{
			"version_info": "1", "listener": typed("listener.v3.Listener", envoyrun.Object(l)),
		}})
	}
	for _, c := range envoyrun.List(b, "static_resources", "clusters") {
		own := envoyrun.Object(c)
		assignment := envoyrun.Object(own, "load_assignment")
		if own["name"] == pool {
			delete(own, "load_assignment")
			own["type"] = "EDS"
			own["eds_cluster_config"] = map[string]any{"service_name": "the-service"}
			assignment["cluster_name"] = "the-service"
		}
		endpoints = append(endpoints, map[string]any{"endpoint_config": typed("endpoint.v3.ClusterLoadAssignment", assignment)})
		clusters = append(clusters, map[string]any{"cluster": typed("cluster.v3.Cluster", own)})
	}
	part := func(kind string, lists map[string]any) any {
		lists["@type"] = "type.googleapis.com/envoy.admin.v3." + kind + "ConfigDump"
		return lists
	}
	return map[string]any{"configs": []any{
		part("Bootstrap", map[string]any{"bootstrap": map[string]any{"static_resources": map[string]any{
			"clusters": []any{map[string]any{"name": "xds_cluster"}},
		}}}),
		part("Clusters", map[string]any{"dynamic_active_clusters": clusters}),
		part("Endpoints", map[string]any{"dynamic_endpoint_configs": endpoints}),
		part("Listeners", map[string]any{"dynamic_listeners": listeners}),
		part("Routes", map[string]any{"dynamic_route_configs": routes}),
		part("Secrets", map[string]any{}),
	}}
}

// camelled returns a tree with its keys in camelCase, as egctl writes them. The keys of extensions have names in them.
func camelled(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = camelled(v[i])
		}
	case map[string]any:
		own := map[string]any{}
		for key, part := range v {
			if !strings.Contains(key, ".") {
				key = camel(key)
			}
			own[key] = camelled(part)
		}
		return own
	}
	return v
}

// One configuration has the same findings in every form, and places in that form.
func TestForms(t *testing.T) {
	broken := envoyrun.Edits(
		setCluster(weir, "circuit_breakers", nil), setFilter(ext, "10s", "max_message_timeout"), setFilter(ext, "1s", "message_timeout"),
		setRoute("retry_policy", nil), trailerless, keep("x-gateway-destination-endpoint"),
	)
	w := shipped(t, "")
	w.Endpoints = append(slices.Clip(servers[1:]), "10.0.0.9:8000")
	bootstrap := rendered(t, "recommended", broken)
	want := ids(examine(t, bootstrap, w))
	if len(want) != 7 {
		t.Fatalf("found %v", want)
	}
	in := func(v any) []byte {
		text, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	dump := func() map[string]any {
		return dumped(t, rendered(t, "recommended", envoyrun.Edits(broken, static(servers...))))
	}
	text, err := json.Marshal(dump())
	if err != nil {
		t.Fatal(err)
	}
	egctl := camelled(dump())
	for name, form := range map[string]struct {
		text  []byte
		where string // of the first finding
	}{
		"config dump":              {text, "configs[1].dynamic_active_clusters[0].cluster.circuit_breakers"},
		"config dump in YAML":      {in(dump()), "configs[1].dynamic_active_clusters[0].cluster.circuit_breakers"},
		"egctl, one gateway":       {in(egctl), "configs[1].dynamic_active_clusters[0].cluster.circuit_breakers"},
		"egctl, named":             {in(map[string]any{"xds": map[string]any{"default/eg": egctl}}), `xds["default/eg"].configs[1].dynamic_active_clusters[0].cluster.circuit_breakers`},
		"bootstrap in camelCase":   {in(camelled(decoded(t, bootstrap))), "static_resources.clusters[0].circuit_breakers"},
		"two documents, one empty": {append([]byte("---\n---\n"), in(decoded(t, bootstrap))...), "static_resources.clusters[0].circuit_breakers"},
	} {
		t.Run(name, func(t *testing.T) {
			r := examine(t, form.text, w)
			if got := ids(r); !slices.Equal(got, want) {
				t.Errorf("found %v, want %v; %v", got, want, r.Notes)
			} else if got := r.Findings[0].Where; got != form.where {
				t.Errorf("at %s, want %s", got, form.where)
			}
		})
	}
}

// The port of Weir's cluster counts also where a dump lists the endpoints apart from it, and is not known without them.
func TestPortOfListedEndpoints(t *testing.T) {
	v := dumped(t, rendered(t, "recommended", static(servers...)))
	configs := v["configs"].([]any)
	for _, c := range envoyrun.List(configs[1], "dynamic_active_clusters") {
		if own := envoyrun.Object(c, "cluster"); own["name"] == weir {
			delete(own, "load_assignment")
			own["type"] = "EDS"
		}
	}
	w := shipped(t, "")
	w.Port = 19002
	at := func() string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range examine(t, text, w).Findings {
			if f.ID == "port-to-weir" {
				return f.Where + ": " + f.Found
			}
		}
		return ""
	}
	want := "configs[2].dynamic_endpoint_configs[0].endpoint_config.endpoints: 9002, and Weir listens at 19002 (--grpc-port)"
	if got := at(); got != want {
		t.Errorf("found %q", got)
	}
	v["configs"] = slices.Delete(configs, 2, 3)
	if got := at(); got != "" {
		t.Errorf("without the endpoints: found %q", got)
	}
}

func decoded(t testing.TB, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The output of egctl has an Envoy for each gateway.
func TestGateways(t *testing.T) {
	good, bad := decoded(t, rendered(t, "recommended", nil)), decoded(t, rendered(t, "recommended", trailerless))
	text, err := json.Marshal(map[string]any{"xds": map[string]any{"a/good": good, "b/bad": bad}})
	if err != nil {
		t.Fatal(err)
	}
	envoys, err := Read(text)
	if err != nil || len(envoys) != 2 {
		t.Fatalf("%d, %v", len(envoys), err)
	}
	first, second := Examine(envoys[0], shipped(t, "")), Examine(envoys[1], shipped(t, ""))
	if len(first.Findings) != 0 || !slices.Equal(ids(second), []string{"response-trailers"}) ||
		!strings.HasPrefix(second.Findings[0].Where, `xds["b/bad"].`) {
		t.Errorf("%v, %v", places(first), places(second))
	}
}

// The line of a finding is that of its key, or of the parent of a missing key, also behind aliases.
func TestLines(t *testing.T) {
	text := `static_resources:
  clusters:
  - &weir
    name: weir
    circuit_breakers:
      thresholds:
      - maxRequests: 5
  - *weir
`
	l := &lines{text: []byte(text)}
	for want, p := range map[int]Path{
		1: {"static_resources", "listeners", 0},
		7: {"static_resources", "clusters", 1, "circuit_breakers", "thresholds", 0, "max_requests"},
		5: {"static_resources", "clusters", 0, "circuit_breakers"},
		8: {"static_resources", "clusters", 1},
	} {
		if got := l.of(0, p); got != want {
			t.Errorf("%s is in line %d, want %d", p, got, want)
		}
	}
	if l.of(1, Path{"a"}) != 0 || (&lines{text: make([]byte, largestWithLines+1)}).of(0, nil) != 0 {
		t.Error("a missing field has a line")
	}
}

// Extensions of unknown types are noted, and hide nothing else. Extensions in a TypedStruct are read.
func TestUnknownTypes(t *testing.T) {
	foreign := func(b envoyrun.Bootstrap) error {
		manager := b.ConnectionManager()
		strange := map[string]any{"name": "strange", "typed_config": map[string]any{
			"@type": "type.googleapis.com/io.solo.Transformation", "deep": []any{map[string]any{"@type": "x/y.Z"}},
		}}
		garbled := map[string]any{"name": "garbled", "typed_config": map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer", "max_request_bytes": "many",
		}}
		buffer := b.Filter(envoyrun.BufferFilter)
		size := buffer["max_request_bytes"]
		delete(buffer, "max_request_bytes")
		buffer["@type"], buffer["type_url"] = "type.googleapis.com/xds.type.v3.TypedStruct", "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer"
		buffer["value"] = map[string]any{"max_request_bytes": size, "of_a_later_version": true}
		manager["http_filters"] = slices.Insert(envoyrun.List(manager, "http_filters"), 0, any(strange), any(garbled))
		return trailerless(b)
	}
	r := examine(t, rendered(t, "recommended", foreign), shipped(t, ""))
	if got := ids(r); !slices.Equal(got, []string{"response-trailers"}) {
		t.Errorf("found %v", places(r))
	}
	for _, want := range []string{"unknown type, not checked: io.solo.Transformation", "unknown type, not checked: y.Z", "envoy.extensions.filters.http.buffer.v3.Buffer cannot be read"} {
		if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("the notes lack %q: %q", want, r.Notes)
		}
	}
}

// The report names missing facts.
func TestNotChecked(t *testing.T) {
	text := rendered(t, "recommended", nil)
	w := shipped(t, "")
	w.TLS, w.Port, w.Endpoints = nil, 0, nil
	if r := examine(t, text, w); len(r.Notes) != 3 || !strings.Contains(r.Notes[0], "--secure-serving") || !strings.Contains(r.Notes[1], "--grpc-port") || !strings.Contains(r.Notes[2], "--endpoints") {
		t.Errorf("%q", r.Notes)
	}
	if r := examine(t, rendered(t, "direct", nil), w); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "no ext_proc") {
		t.Errorf("%q", r.Notes)
	}
	named := static("engines.example:8000")
	if r := examine(t, rendered(t, "recommended", named), shipped(t, "")); len(r.Findings) != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "include_eds") {
		t.Errorf("%v %q", places(r), r.Notes)
	}
	rds := setManager("route_config", nil)
	if r := examine(t, rendered(t, "recommended", envoyrun.Edits(rds, trailerless)), shipped(t, "")); len(r.Findings) != 1 ||
		!strings.Contains(fmt.Sprint(r.Notes), "its routes are not there") {
		t.Errorf("%v %q", places(r), r.Notes)
	}
}

// A text that is not a configuration is refused with a reason.
func TestUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "is not a configuration of Envoy",
		"{}":                                "is not a configuration of Envoy",
		"[1, 2]":                            "is not a configuration of Envoy",
		"a: [":                              "is neither JSON nor YAML",
		`{"configs": 3}`:                    "is not a configuration of Envoy",
		`{"xds": {"a": {"configs": []}}}`:   "is not a configuration of Envoy",
		"? {a: 1}\n: b\nstatic_resources: ": "is neither JSON nor YAML",
		"<html>":                            "is not a configuration of Envoy",
	} {
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// No text causes a panic in a check, whatever the types of its values, or takes long.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"recommended", "gate"} {
		f.Add(rendered(f, name, nil))
	}
	f.Add([]byte(`{"static_resources":{"listeners":[null,3,{"filter_chains":[{"filters":[{"typed_config":{"@type":"a"}}]}]}],"clusters":{"a":1}}}`))
	f.Add([]byte(`{"configs":[{"@type":"xEndpointsConfigDump","static_endpoint_configs":[{"endpoint_config":{"endpoints":[{"lb_endpoints":[{}]}]}}]}]}`))
	f.Add([]byte("a: &a [1]\nb: &b [*a, *a]\nstatic_resources: {listeners: [*b, {1: 2}]}"))
	w := shipped(f, "")
	f.Fuzz(func(t *testing.T, text []byte) {
		envoys, err := Read(text)
		if (err == nil) == (len(envoys) == 0) {
			t.Fatalf("%d Envoys, %v", len(envoys), err)
		}
		for _, e := range envoys {
			for _, finding := range Examine(e, w).Findings {
				if finding.ID == "" || finding.Where == "" || finding.Change == "" {
					t.Errorf("%+v", finding)
				}
			}
		}
	})
}

// Deeply nested messages take bounded time.
func TestDeepMessages(t *testing.T) {
	deep := any(map[string]any{})
	for range 3000 {
		deep = map[string]any{"@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "name": "a", "typed_config": deep}
	}
	b := map[string]any{"static_resources": map[string]any{"listeners": []any{map[string]any{"filter_chains": []any{map[string]any{"filters": []any{
		map[string]any{"name": "a", "typed_config": deep},
	}}}}}}}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if r := examine(t, text, shipped(t, "")); !strings.Contains(fmt.Sprint(r.Notes), "too many messages") {
		t.Errorf("%.300q", r.Notes)
	}
}
