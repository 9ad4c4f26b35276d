package envoyrun

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	shipped "github.com/weir-epp/weir/config/envoy"
)

// Names that the shipped configurations use.
const (
	WeirCluster         = "weir"                        // the ext_proc server's cluster
	ModelServersCluster = "model_servers"               // the cluster of the model servers
	ExtProcFilter       = "envoy.filters.http.ext_proc" // the main ext_proc filter
	GateFilter          = "weir.first_token"            // the first-token gate of gate.yaml
	BufferFilter        = "envoy.filters.http.buffer"   // lets only whole requests go on
	APIKeyFilter        = "envoy.filters.http.api_key_auth"
	JWTFilter           = "envoy.filters.http.jwt_authn"
	HeaderFilter        = "envoy.filters.http.header_mutation" // removes what clients must not say
)

// Bootstrap is an Envoy configuration as decoded from YAML or JSON: maps, slices, strings, float64s and bools.
type Bootstrap map[string]any

// Load reads a configuration: a shipped one by its name, with or without ".yaml" ("recommended"), or any file by a path
// with a slash in it.
func Load(config string) (Bootstrap, error) {
	var raw []byte
	var err error
	if strings.ContainsRune(config, filepath.Separator) {
		raw, err = os.ReadFile(config)
	} else {
		raw, err = fs.ReadFile(shipped.Files, strings.TrimSuffix(config, ".yaml")+".yaml")
	}
	if err != nil {
		return nil, fmt.Errorf("envoyrun: reading configuration: %w", err)
	}
	var bootstrap Bootstrap
	if err := yaml.UnmarshalStrict(raw, &bootstrap); err != nil {
		return nil, fmt.Errorf("envoyrun: configuration %s: %w", config, err)
	}
	return bootstrap, nil
}

// Shipped names the shipped configurations, without ".yaml", in alphabetical order.
func Shipped() []string {
	entries, err := fs.ReadDir(shipped.Files, ".")
	if err != nil {
		panic(err) // the files are in this very binary
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, strings.TrimSuffix(entry.Name(), ".yaml"))
		}
	}
	return names
}

// Cluster returns the static cluster of that name, to be changed in place; nil if there is none.
func (b Bootstrap) Cluster(name string) map[string]any {
	return named(list(object(b, "static_resources"), "clusters"), name)
}

// Filter returns the typed_config of the first listener's HTTP filter of that name, to be changed in place; nil if there
// is none.
func (b Bootstrap) Filter(name string) map[string]any {
	return object(named(list(b.connectionManager(), "http_filters"), name), "typed_config")
}

// Route returns the action of the first route ("cluster", "timeout", "retry_policy"), to be changed in place; nil if
// there is none.
func (b Bootstrap) Route() map[string]any {
	hosts := list(object(b.connectionManager(), "route_config"), "virtual_hosts")
	return object(first(list(first(hosts), "routes")), "route")
}

func (b Bootstrap) listener() map[string]any {
	return first(list(object(b, "static_resources"), "listeners"))
}

// connectionManager is the first network filter of the first listener: the shipped files have one.
func (b Bootstrap) connectionManager() map[string]any {
	chain := first(list(b.listener(), "filter_chains"))
	return object(first(list(chain, "filters")), "typed_config")
}

// Filters names the first listener's HTTP filters, in their order.
func (b Bootstrap) Filters() []string {
	var names []string
	for _, entry := range list(b.connectionManager(), "http_filters") {
		filter, _ := entry.(map[string]any)
		name, _ := filter["name"].(string)
		names = append(names, name)
	}
	return names
}

// The four below walk decoded YAML. Where a part is missing or of another kind they return nil, which they take again.

func object(parent map[string]any, key string) map[string]any {
	child, _ := parent[key].(map[string]any)
	return child
}

func list(parent map[string]any, key string) []any {
	child, _ := parent[key].([]any)
	return child
}

func first(entries []any) map[string]any {
	if len(entries) == 0 {
		return nil
	}
	entry, _ := entries[0].(map[string]any)
	return entry
}

func named(entries []any, name string) map[string]any {
	for _, entry := range entries {
		if object, ok := entry.(map[string]any); ok && object["name"] == name {
			return object
		}
	}
	return nil
}
