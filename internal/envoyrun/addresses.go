package envoyrun

import (
	"errors"
	"fmt"
	"net/netip"
)

// setAddresses puts the options' addresses into a configuration: Envoy's own, Weir's and the model servers'. It turns
// off TLS to Weir, whatever the file says.
func (b Bootstrap) setAddresses(o Options) error {
	return errors.Join(
		setAddress(b.Listener(), "listener", orAnyPort(o.Listen)),
		setAddress(Object(b, "admin"), "admin", orAnyPort(o.Admin)),
		b.setWeir(o.Weir),
		b.setModelServers(o.ModelServers),
	)
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
		return nil // a configuration without ext_proc
	}
	delete(cluster, "transport_socket")
	return setEndpoints(cluster, []string{address})
}

func (b Bootstrap) setModelServers(addresses []string) error {
	cluster := b.Cluster(ModelServersCluster)
	if cluster == nil || len(addresses) == 0 {
		return fmt.Errorf("envoyrun: need a cluster %s (have: %t) and at least one model server (have: %d)",
			ModelServersCluster, cluster != nil, len(addresses))
	}
	return setEndpoints(cluster, addresses)
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
