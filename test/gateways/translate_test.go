package gateways

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/checkout"
	"github.com/weir-epp/weir/internal/envoyrun"
)

// The names in the chart's objects.
const (
	release   = "llama"
	namespace = "inference"
	fullname  = "llama-weir"
)

// Envoy Gateway's clusters for the chart's policy and route.
const (
	weirCluster   = "envoyextensionpolicy/inference/llama-weir/extproc/0"
	modelsCluster = "httproute/inference/llama-weir/rule/0"
)

// base are the chart's values of all tests.
const base = `
pool: { matchLabels: { app: llama } }
httpRoute: { enabled: true, parentRefs: [ { name: gateway } ] }
gateway: { provider: envoy-gateway }
`

// theirs are the objects of Envoy Gateway's operator.
const theirs = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: envoy }
spec: { controllerName: gateway.envoyproxy.io/gatewayclass-controller }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: gateway, namespace: inference }
spec: { gatewayClassName: envoy, listeners: [ { name: http, protocol: HTTP, port: 8080 } ] }
`

// tool runs a tool of hack/tool.sh, and returns its standard output.
func tool(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	path, err := checkout.Tool(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	home := t.TempDir() // nothing of the user's own
	cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"))
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, problems.String())
	}
	return out.Bytes()
}

// render renders the chart with these values, and returns its objects.
func render(t *testing.T, values ...string) []map[string]any {
	t.Helper()
	args := []string{"template", release, "../../charts/weir", "--namespace", namespace}
	for i, text := range values {
		file := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--values", file)
	}
	var all []map[string]any
	for dec := yaml.NewDecoder(bytes.NewReader(tool(t, "helm", args...))); ; {
		var o map[string]any
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
}

// find returns the object of a kind and a name.
func find(t *testing.T, all []map[string]any, kind, name string) map[string]any {
	t.Helper()
	for _, o := range all {
		if o["kind"] == kind && envoyrun.Object(o, "metadata")["name"] == name {
			return o
		}
	}
	t.Fatalf("the chart has no %s %s", kind, name)
	return nil
}

// read are the kinds that Envoy Gateway reads.
var read = []string{
	"Service", "HTTPRoute", "Backend", "BackendTLSPolicy", "EnvoyExtensionPolicy", "BackendTrafficPolicy", "ClientTrafficPolicy",
}

// found returns an object in a cluster's form. egctl knows no EndpointSlices, so it uses the address of a Service for
// its pods: each Service has one.
func found(o map[string]any) map[string]any {
	if o["kind"] == "Service" {
		o["spec"] = maps.Clone(envoyrun.Object(o, "spec"))
		envoyrun.Object(o, "spec")["clusterIP"] = "10.96.0.1"
	}
	return o
}

// translate translates the chart's objects by egctl, with those of a cluster beside them, and returns the output. Envoy
// Gateway must accept each policy and the route.
func translate(t *testing.T, all []map[string]any, others ...map[string]any) []byte {
	t.Helper()
	var text strings.Builder
	text.WriteString(theirs)
	for _, o := range all {
		if slices.Contains(read, fmt.Sprint(o["kind"])) {
			others = append(others, found(o))
		}
	}
	for _, o := range others {
		document, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := tool(t, "egctl", "x", "translate", "--from", "gateway-api", "--to", "gateway-api,xds", "--output", "json", "--file", file)
	for _, condition := range refused.FindAllString(string(out), -1) {
		t.Errorf("Envoy Gateway: %s", condition)
	}
	return out
}

// refused is a negative condition in a resource's status.
var refused = regexp.MustCompile(`\{"type":"[A-Za-z]+","status":"False"[^}]*\}`)

// bootstrap makes a configuration for Envoy's start from the output of egctl: the same listener, with its routes in it,
// and the same clusters, with their endpoints in them.
func bootstrap(t *testing.T, translated []byte) envoyrun.Bootstrap {
	t.Helper()
	var output struct {
		XDS map[string]struct{ Configs []any }
	}
	if err := json.Unmarshal(translated, &output); err != nil {
		t.Fatal(err)
	}
	gateway, ok := output.XDS[namespace+"/gateway"]
	if !ok {
		t.Fatalf("egctl has translated %d other gateways", len(output.XDS))
	}
	var listener map[string]any
	var clusters []any
	routes, endpoints, layers := map[string]any{}, map[string]any{}, map[string]any{}
	for _, config := range gateway.Configs {
		config = snake(config)
		for _, l := range envoyrun.List(config, "dynamic_listeners") {
			if l := envoyrun.Object(l, "active_state", "listener"); l["name"] == namespace+"/gateway/http" {
				listener = l
			}
		}
		for _, c := range envoyrun.List(config, "dynamic_active_clusters") {
			clusters = append(clusters, envoyrun.Object(c, "cluster"))
		}
		for _, r := range envoyrun.List(config, "dynamic_route_configs") {
			r := envoyrun.Object(r, "route_config")
			routes[fmt.Sprint(r["name"])] = r
		}
		for _, e := range envoyrun.List(config, "dynamic_endpoint_configs") {
			e := envoyrun.Object(e, "endpoint_config")
			endpoints[fmt.Sprint(e["cluster_name"])] = e
		}
		if b := envoyrun.Object(config, "bootstrap"); b != nil {
			layers = envoyrun.Object(b, "layered_runtime")
		}
	}
	for _, c := range clusters {
		c := envoyrun.Object(c)
		delete(c, "@type")
		if c["eds_cluster_config"] != nil {
			delete(c, "eds_cluster_config")
			assignment := envoyrun.Object(endpoints, fmt.Sprint(c["name"]))
			delete(assignment, "@type")
			c["type"], c["load_assignment"] = "STATIC", assignment
		}
	}
	manager := envoyrun.Object(listener, "default_filter_chain", "filters", 0, "typed_config")
	if manager == nil {
		t.Fatalf("the listener has no connection manager: %v", listener)
	}
	config := envoyrun.Object(routes, fmt.Sprint(envoyrun.Object(manager, "rds")["route_config_name"]))
	delete(config, "@type")
	delete(listener, "@type")
	manager["route_config"] = config
	delete(manager, "rds")
	// The places of the shipped files' parts.
	listener["filter_chains"] = []any{listener["default_filter_chain"]}
	delete(listener, "default_filter_chain")
	return envoyrun.Bootstrap{
		"admin":            map[string]any{},
		"layered_runtime":  layers,
		"static_resources": map[string]any{"listeners": []any{listener}, "clusters": clusters},
	}
}

var (
	camel   = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	capital = regexp.MustCompile(`[A-Z]`)
)

// snake returns a part of a configuration with the field names of the shipped files, in place of JSON's.
func snake(part any) any {
	switch p := part.(type) {
	case []any:
		for i := range p {
			p[i] = snake(p[i])
		}
	case map[string]any:
		for key, value := range p {
			delete(p, key)
			if camel.MatchString(key) {
				key = capital.ReplaceAllStringFunc(key, func(c string) string { return "_" + strings.ToLower(c) })
			}
			p[key] = snake(value)
		}
	}
	return part
}
