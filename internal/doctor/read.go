package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxBytes is the size of the largest configuration read.
const MaxBytes = 256 << 20

// errNothing is the error for a text without an Envoy's configuration.
var errNothing = errors.New("is not a configuration of Envoy: want a bootstrap (static_resources), a config dump (configs), or the " +
	"output of egctl x translate (xds)")

// Read returns the Envoys in a text in YAML or JSON.
func Read(text []byte) ([]*Envoy, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("has more than %d bytes", MaxBytes)
	}
	documents, err := decode(text)
	if err != nil {
		return nil, err
	}
	source := &lines{text: text}
	var envoys []*Envoy
	for i, document := range documents {
		for _, r := range gateways(document) {
			e := build(r)
			e.lineOf = func(p Path) int { return source.of(i, p) }
			envoys = append(envoys, e)
		}
	}
	if len(envoys) == 0 {
		return nil, errNothing
	}
	return envoys, nil
}

// decode returns the documents of a text as trees of maps, lists and scalars.
func decode(text []byte) ([]any, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		decoder := json.NewDecoder(bytes.NewReader(trimmed))
		decoder.UseNumber()
		var tree any
		if err := decoder.Decode(&tree); err == nil && !decoder.More() {
			return []any{tree}, nil
		}
		// a flow style of YAML, perhaps
	}
	var documents []any
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var tree any
		err := decoder.Decode(&tree)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("is neither JSON nor YAML: %w", err)
		}
		documents = append(documents, tree)
	}
}

// resource is a message in an Envoy's configuration.
type resource struct {
	at   Path
	tree map[string]any
}

// resources are the parts of one Envoy's configuration.
type resources struct {
	listeners, clusters, routes, endpoints, extensions []resource
}

// gateways returns the resources of each Envoy in a document; none if it has no configuration.
func gateways(document any) []resources {
	tree, _ := document.(map[string]any)
	if tree == nil {
		return nil
	}
	named, _ := tree["xds"].(map[string]any)
	if len(named) == 0 {
		var r resources
		if r.dump(nil, tree) {
			return []resources{r}
		}
		return nil
	}
	var all []resources // egctl: one for each gateway
	for _, name := range slices.Sorted(maps.Keys(named)) {
		var r resources
		if r.dump(Path{"xds", name}, named[name]) {
			all = append(all, r)
		}
	}
	return all
}

// dump adds the resources of a bootstrap, a config dump or a part of one, and reports whether v is one of these.
func (r *resources) dump(at Path, v any) bool {
	if list, ok := v.([]any); ok {
		return r.entries(at, list)
	}
	tree, _ := v.(map[string]any)
	if at2, list := under(at, tree, "configs"); list != nil {
		entries, _ := list.([]any)
		return r.entries(at2, entries)
	}
	if at2, static := under(at, tree, "static_resources"); static != nil {
		r.static(at2, static)
		return true
	}
	return r.entry(at, tree)
}

// entries adds the resources of the parts of a config dump.
func (r *resources) entries(at Path, list []any) bool {
	known := false
	for i, entry := range list {
		tree, _ := entry.(map[string]any)
		known = r.entry(at.add(i), tree) || known
	}
	return known
}

// entry adds the resources of one part of a config dump, and reports whether tree is one. The other parts repeat the
// bootstrap's resources; the bootstrap's count only if the others lack them (build).
func (r *resources) entry(at Path, tree map[string]any) bool {
	url, _ := tree["@type"].(string)
	kind, ok := strings.CutSuffix(url[strings.LastIndexByte(url, '.')+1:], "ConfigDump")
	if !ok {
		return false
	}
	collect := func(to *[]resource, list string, within ...string) {
		at, entries := under(at, tree, list)
		all, _ := entries.([]any)
		for i := range all {
			at, v := at.add(i), all[i]
			for _, key := range within {
				part, _ := v.(map[string]any)
				at, v = under(at, part, key)
			}
			if found, _ := v.(map[string]any); found != nil {
				*to = append(*to, resource{at, found})
			}
		}
	}
	switch kind {
	case "Bootstrap":
		at, bootstrap := under(at, tree, "bootstrap")
		part, _ := bootstrap.(map[string]any)
		at, static := under(at, part, "static_resources")
		r.static(at, static)
	case "Listeners":
		collect(&r.listeners, "static_listeners", "listener")
		collect(&r.listeners, "dynamic_listeners", "active_state", "listener")
	case "Clusters":
		collect(&r.clusters, "static_clusters", "cluster")
		collect(&r.clusters, "dynamic_active_clusters", "cluster")
	case "Routes":
		collect(&r.routes, "static_route_configs", "route_config")
		collect(&r.routes, "dynamic_route_configs", "route_config")
	case "Endpoints":
		collect(&r.endpoints, "static_endpoint_configs", "endpoint_config")
		collect(&r.endpoints, "dynamic_endpoint_configs", "endpoint_config")
	case "Ecds":
		collect(&r.extensions, "ecds_filters", "ecds_filter")
	}
	return true
}

// static adds the listeners and clusters of a bootstrap.
func (r *resources) static(at Path, v any) {
	tree, _ := v.(map[string]any)
	for key, to := range map[string]*[]resource{"listeners": &r.listeners, "clusters": &r.clusters} {
		list, _ := tree[key].([]any)
		for i := range list {
			if part, _ := list[i].(map[string]any); part != nil {
				*to = append(*to, resource{at.add(key, i), part})
			}
		}
	}
}

// under returns the value of a key, in either spelling, and its path; nil if there is none.
func under(at Path, tree map[string]any, key string) (Path, any) {
	v, ok := tree[key]
	if !ok {
		v = tree[camel(key)]
	}
	return at.add(key), v
}
