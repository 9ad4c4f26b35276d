package envoyrun

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	shipped "github.com/weir-epp/weir/config/envoy"
	"github.com/weir-epp/weir/internal/eds"
)

// KeepHeader returns an Edit that keeps client headers, given in lower case, that the shipped files remove, as if
// clients were a trusted hop.
func KeepHeader(names ...string) func(Bootstrap) error {
	return func(b Bootstrap) error {
		mutations := Object(b.Filter(HeaderFilter), "mutations")
		all := List(mutations, "request_mutations")
		kept := make([]any, 0, len(all))
		for _, entry := range all {
			if name, ok := Object(entry)["remove"].(string); !ok || !slices.Contains(names, name) {
				kept = append(kept, entry)
			}
		}
		if len(kept) < len(all) {
			mutations["request_mutations"] = kept
		}
		return nil
	}
}

// WithoutFilter returns an Edit that removes the first listener's HTTP filters of that name, if any.
func WithoutFilter(name string) func(Bootstrap) error {
	return func(b Bootstrap) error {
		manager := b.ConnectionManager()
		var kept []any
		for _, entry := range List(manager, "http_filters") {
			if Object(entry)["name"] != name {
				kept = append(kept, entry)
			}
		}
		if manager != nil {
			manager["http_filters"] = kept
		}
		return nil
	}
}

// Edits returns an Edit that applies several in this order; nil ones are skipped.
func Edits(edits ...func(Bootstrap) error) func(Bootstrap) error {
	return func(b Bootstrap) error {
		for _, edit := range edits {
			if edit == nil {
				continue
			}
			if err := edit(b); err != nil {
				return err
			}
		}
		return nil
	}
}

// setAddresses puts the options' addresses into a configuration: Envoy's own, Weir's and the model servers'. It turns
// off TLS to Weir, whatever the file says.
func (b Bootstrap) setAddresses(o Options) error {
	return errors.Join(
		setAddress(b.Listener(), "listener", orAnyPort(o.Listen)),
		setAddress(Object(b, "admin"), "admin", orAnyPort(o.Admin)),
		b.setStats(orAnyPort(o.Admin)),
		b.setWeir(o.Weir),
		b.setModelServers(o),
	)
}

// setStats makes the listener with the counters, if any, bind any port and ask the admin interface.
func (b Bootstrap) setStats(admin string) error {
	listener := b.Stats()
	if listener == nil {
		return nil
	}
	cluster := b.Cluster(AdminCluster)
	if cluster == nil {
		return fmt.Errorf("envoyrun: configuration has a listener %s and no cluster %s", StatsListener, AdminCluster)
	}
	return errors.Join(setAddress(listener, "listener "+StatsListener, orAnyPort("")), setEndpoints(cluster, []string{admin}))
}

func orAnyPort(address string) string {
	if address == "" {
		return "127.0.0.1:0"
	}
	return address
}

// setAddress sets parent's address, an Envoy Address message.
func setAddress(parent map[string]any, what, address string) error {
	if parent == nil {
		return fmt.Errorf("envoyrun: configuration has no %s", what)
	}
	message, err := addressMessage(address)
	if err != nil {
		return fmt.Errorf("envoyrun: %s address: %w", what, err)
	}
	parent["address"] = message
	return nil
}

func (b Bootstrap) setWeir(address string) error {
	cluster := b.Cluster(WeirCluster)
	if cluster == nil {
		return nil // the configuration has no ext_proc
	}
	clusters := []map[string]any{cluster}
	if parts := List(cluster, "cluster_type", "typed_config", "clusters"); len(parts) > 0 { // made of other clusters
		clusters = clusters[:0]
		for _, name := range parts {
			clusters = append(clusters, b.Cluster(fmt.Sprint(name)))
		}
	}
	for _, c := range clusters {
		if c == nil {
			return fmt.Errorf("envoyrun: cluster %s: a cluster that it is made of is missing", WeirCluster)
		}
		delete(c, "transport_socket")
		if err := setEndpoints(c, strings.Split(address, ",")); err != nil {
			return err
		}
	}
	return nil
}

func (b Bootstrap) setModelServers(o Options) error {
	cluster := b.Cluster(ModelServersCluster)
	switch {
	case cluster == nil || len(o.ModelServers) == 0 && o.EndpointsFile == "":
		return fmt.Errorf("envoyrun: need a cluster %s (have: %t) and at least one model server (have: %d) or a file of them",
			ModelServersCluster, cluster != nil, len(o.ModelServers))
	case o.EndpointsFile != "":
		delete(cluster, "load_assignment")
		cluster["type"] = "EDS"
		setEndpointsFile(cluster, o.EndpointsFile)
		if b["node"] == nil {
			b["node"] = map[string]any{"id": "envoy", "cluster": "inference"}
		}
		return nil
	case cluster["eds_cluster_config"] != nil:
		setEndpointsFile(cluster, shippedEndpoints)
		_, err := hosts(o.ModelServers)
		return err
	default:
		return setEndpoints(cluster, o.ModelServers)
	}
}

// setEndpointsFile makes a cluster read its endpoints from a file.
func setEndpointsFile(cluster map[string]any, path string) {
	cluster["eds_cluster_config"] = map[string]any{"eds_config": map[string]any{
		"resource_api_version": "V3",
		"path_config_source": map[string]any{
			"path": path, "watched_directory": map[string]any{"path": filepath.Dir(path)},
		},
	}}
}

// hosts returns addresses in the form for a file of endpoints.
func hosts(addresses []string) ([]eds.Host, error) {
	all := make([]eds.Host, len(addresses))
	for i, address := range addresses {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, fmt.Errorf("envoyrun: model server: want ip:port: %w", err)
		}
		all[i].Address = ap
	}
	return all, nil
}

// setEndpoints makes addresses the endpoints of a cluster, all in one locality.
func setEndpoints(cluster map[string]any, addresses []string) error {
	endpoints := make([]any, 0, len(addresses))
	for _, address := range addresses {
		message, err := addressMessage(address)
		if err != nil {
			return fmt.Errorf("envoyrun: endpoint of cluster %v: %w", cluster["name"], err)
		}
		endpoints = append(endpoints, map[string]any{"endpoint": map[string]any{"address": message}})
	}
	cluster["load_assignment"] = map[string]any{
		"cluster_name": cluster["name"],
		"endpoints":    []any{map[string]any{"lb_endpoints": endpoints}},
	}
	return nil
}

func addressMessage(address string) (map[string]any, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("want ip:port: %w", err)
	}
	return map[string]any{"socket_address": map[string]any{
		"address":    ap.Addr().String(),
		"port_value": ap.Port(),
	}}, nil
}

// shippedFolder is the path of the shipped files in their references to each other: relative to the root of the
// repository.
const shippedFolder = "config/envoy/"

// edsFile is the file of the model servers' endpoints below it, and shippedEndpoints its path.
const (
	edsFile          = "eds/model_servers.yaml"
	shippedEndpoints = shippedFolder + edsFile
)

// bundle copies the configuration's files below config/envoy, such as keys, into dir, and makes the configuration refer
// to the copies, so that Envoy can run in any working directory. The file of endpoints gets the model servers.
func (b Bootstrap) bundle(dir string, modelServers []string) error {
	err := fs.WalkDir(shipped.Files, "auth", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, path)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		content, err := fs.ReadFile(shipped.Files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if err != nil {
		return fmt.Errorf("copying the files of the configuration: %w", err)
	}
	renamed(map[string]any(b), dir)
	return writeEndpoints(filepath.Join(dir, edsFile), modelServers)
}

// writeEndpoints replaces a file of the model servers' endpoints.
func writeEndpoints(path string, modelServers []string) error {
	all, err := hosts(modelServers)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return eds.Write(path, eds.Encode(ModelServersCluster, all))
}

// renamed returns a part of a configuration with each path below config/envoy replaced by one below dir.
func renamed(part any, dir string) any {
	switch p := part.(type) {
	case string:
		if rest, ok := strings.CutPrefix(p, shippedFolder); ok {
			return filepath.Join(dir, rest)
		}
	case []any:
		for i := range p {
			p[i] = renamed(p[i], dir)
		}
	case map[string]any:
		for key := range p {
			p[key] = renamed(p[key], dir)
		}
	}
	return part
}
