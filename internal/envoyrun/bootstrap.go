package envoyrun

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"

	shipped "github.com/weir-epp/weir/config/envoy"
)

// Names that the shipped configurations use.
const (
	WeirCluster         = "weir"                        // the ext_proc server's cluster
	ModelServersCluster = "model_servers"               // the cluster of the model servers
	AdminCluster        = "envoy_admin"                 // the cluster of Envoy's own admin interface
	StatsListener       = "stats"                       // the listener with the counters of ext_proc
	ExtProcFilter       = "envoy.filters.http.ext_proc" // the main ext_proc filter
	GateFilter          = "weir.first_token"            // the first-token gate of gate.yaml
	BufferFilter        = "envoy.filters.http.buffer"   // lets only complete requests pass
	APIKeyFilter        = "envoy.filters.http.api_key_auth"
	JWTFilter           = "envoy.filters.http.jwt_authn"
	HeaderFilter        = "envoy.filters.http.header_mutation" // removes headers that clients must not send
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
		panic(err) // the files are embedded in this binary
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
	return named(List(b, "static_resources", "clusters"), name)
}

// Listener returns the first listener, to be changed in place; nil if there is none.
func (b Bootstrap) Listener() map[string]any { return Object(b, "static_resources", "listeners", 0) }

// Stats returns the listener with the counters of ext_proc, to be changed in place; nil if there is none.
func (b Bootstrap) Stats() map[string]any {
	return named(List(b, "static_resources", "listeners"), StatsListener)
}

// ConnectionManager returns the typed_config of the first listener's first network filter, which is the HTTP connection
// manager in the shipped files, to be changed in place; nil if there is none.
func (b Bootstrap) ConnectionManager() map[string]any {
	return Object(b.Listener(), "filter_chains", 0, "filters", 0, "typed_config")
}

// Filter returns the typed_config of the first listener's HTTP filter of that name, to be changed in place; nil if there
// is none.
func (b Bootstrap) Filter(name string) map[string]any {
	return Object(named(List(b.ConnectionManager(), "http_filters"), name), "typed_config")
}

// Filters names the first listener's HTTP filters, in their order.
func (b Bootstrap) Filters() []string {
	var names []string
	for _, filter := range List(b.ConnectionManager(), "http_filters") {
		name, _ := Object(filter)["name"].(string)
		names = append(names, name)
	}
	return names
}

// Route returns the action ("cluster", "timeout", "retry_policy") of the first route with one, to be changed in place.
// The change applies to all routes with the same action, in the shipped files all routes to the model servers. It
// returns nil if there is none.
func (b Bootstrap) Route() map[string]any {
	var action map[string]any
	for _, route := range b.routes() {
		if action == nil {
			action = Object(route, "route")
		}
		if action != nil && reflect.DeepEqual(Object(route, "route"), action) {
			Object(route)["route"] = action
		}
	}
	return action
}

// routes returns the routes of the first virtual host.
func (b Bootstrap) routes() []any {
	return List(b.ConnectionManager(), "route_config", "virtual_hosts", 0, "routes")
}

// Object returns the object at a path below part of a configuration, to be changed in place: a string in the path is
// the key of an object, an int an index in a list. It returns nil if there is no object at the path.
func Object(part any, path ...any) map[string]any {
	object, _ := walk(part, path).(map[string]any)
	return object
}

// List is [Object] for a list. Its entries are the configuration's own; entries appended to it are not.
func List(part any, path ...any) []any {
	list, _ := walk(part, path).([]any)
	return list
}

// walk returns the value at a path; nil if there is none.
func walk(part any, path []any) any {
	if b, ok := part.(Bootstrap); ok {
		part = map[string]any(b)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := part.(map[string]any)
			part = object[step]
		case int:
			list, _ := part.([]any)
			if step < 0 || step >= len(list) {
				return nil
			}
			part = list[step]
		default:
			panic(fmt.Sprintf("envoyrun: a path has keys and places, not %T", step))
		}
	}
	return part
}

// named returns the object with this name in a list; nil if there is none.
func named(entries []any, name string) map[string]any {
	for _, entry := range entries {
		if object := Object(entry); object["name"] == name {
			return object
		}
	}
	return nil
}
