package doctor

import (
	"net/netip"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Envoy is the configuration of one Envoy, as the checks read it.
type Envoy struct {
	managers []*manager
	clusters []*cluster
	uses     []use
	notes    notes

	lineOf func(Path) int
}

// manager is an HTTP connection manager of a listener.
type manager struct {
	at         Path // of its configuration
	config     *managerv3.HttpConnectionManager
	listenerAt Path
	listener   *listenerv3.Listener
	filters    []*filter
	routes     []*route // nil: not in the text
}

// filter is an HTTP filter of a connection manager, or of a cluster.
type filter struct {
	at       Path // of its entry in the list
	name     string
	disabled bool
	config   proto.Message // nil: not known
}

// cluster is a cluster with its extensions.
type cluster struct {
	at        Path
	config    *clusterv3.Cluster
	options   *httpv3.HttpProtocolOptions // nil: none
	optionsAt Path
	filters   []*filter // of upstream requests
	parts     []string  // names of the clusters that form it
	endpoints []endpoint
	listedAt  Path // of the localities of its endpoints
	resolved  bool // the addresses of its endpoints are known
}

// endpoint is an address of a cluster and its place.
type endpoint struct {
	at      Path
	address string // ip:port
	health  corev3.HealthStatus
}

const optionsKey = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// build makes an Envoy from its resources.
func build(r resources) *Envoy {
	e := &Envoy{}
	read := reader{&e.notes}
	configs := map[string]*routeConfig{}
	for _, from := range r.routes {
		c := &routeConfig{at: from.at, config: &routev3.RouteConfiguration{}}
		if read.message(from, c.config) && configs[c.config.GetName()] == nil {
			configs[c.config.GetName()] = c
		}
	}
	extensions := map[string]proto.Message{}
	for _, from := range r.extensions {
		var c corev3.TypedExtensionConfig
		if read.message(from, &c) {
			extensions[c.GetName()] = opened(c.GetTypedConfig())
		}
	}
	listed := map[string]bool{}
	for _, from := range r.listeners {
		l := &listenerv3.Listener{}
		if !read.message(from, l) || l.GetName() != "" && listed[l.GetName()] {
			continue
		}
		listed[l.GetName()] = true
		e.addManagers(from.at, l, configs, extensions)
	}
	assigned := assignments(read, r.endpoints)
	listed = map[string]bool{}
	for _, from := range r.clusters {
		c := &clusterv3.Cluster{}
		if !read.message(from, c) || listed[c.GetName()] {
			continue
		}
		listed[c.GetName()] = true
		e.clusters = append(e.clusters, newCluster(from.at, c, assigned))
	}
	e.findUses()
	return e
}

// opened returns the message in an Any; nil if there is none, or its type is unknown.
func opened(a *anypb.Any) proto.Message {
	if a == nil {
		return nil
	}
	m, err := a.UnmarshalNew()
	if err != nil {
		return nil
	}
	if _, empty := m.(*emptypb.Empty); empty {
		return nil
	}
	return m
}

// addManagers adds the HTTP connection managers of a listener.
func (e *Envoy) addManagers(at Path, l *listenerv3.Listener, configs map[string]*routeConfig, extensions map[string]proto.Message) {
	add := func(chainAt Path, chain *listenerv3.FilterChain) {
		for i, f := range chain.GetFilters() {
			config, ok := opened(f.GetTypedConfig()).(*managerv3.HttpConnectionManager)
			if !ok {
				continue
			}
			m := &manager{at: chainAt.add("filters", i, "typed_config"), config: config, listenerAt: at, listener: l}
			m.filters = filtersOf(m.at.add("http_filters"), config.GetHttpFilters(), extensions, &e.notes)
			switch name := config.GetRds().GetRouteConfigName(); {
			case config.GetRouteConfig() != nil:
				m.routes = (&routeConfig{m.at.add("route_config"), config.GetRouteConfig()}).routes()
			case configs[name] != nil:
				m.routes = configs[name].routes()
			default:
				e.notes.add(m.at, "its routes are not there (route configuration %q), so overrides and clusters of routes are not checked", name)
			}
			e.managers = append(e.managers, m)
		}
	}
	for i, chain := range l.GetFilterChains() {
		add(at.add("filter_chains", i), chain)
	}
	add(at.add("default_filter_chain"), l.GetDefaultFilterChain())
}

// filtersOf returns the filters of a list.
func filtersOf(at Path, list []*managerv3.HttpFilter, extensions map[string]proto.Message, n *notes) []*filter {
	filters := make([]*filter, len(list))
	for i, f := range list {
		own := &filter{at: at.add(i), name: f.GetName(), disabled: f.GetDisabled(), config: opened(f.GetTypedConfig())}
		if discovery := f.GetConfigDiscovery(); discovery != nil {
			own.config = extensions[f.GetName()]
			if own.config == nil {
				own.config = opened(discovery.GetDefaultConfig())
			}
			if own.config == nil && n != nil {
				n.add(own.at, "its configuration is elsewhere (config_discovery), not checked: %s", f.GetName())
			}
		}
		filters[i] = own
	}
	return filters
}

// newCluster returns a cluster with its own or assigned endpoints.
func newCluster(at Path, config *clusterv3.Cluster, assigned map[string]assignment) *cluster {
	c := &cluster{at: at, config: config, optionsAt: at.add("typed_extension_protocol_options", optionsKey)}
	c.options, _ = opened(config.GetTypedExtensionProtocolOptions()[optionsKey]).(*httpv3.HttpProtocolOptions)
	c.filters = filtersOf(c.optionsAt.add("http_filters"), c.options.GetHttpFilters(), nil, nil)
	if parts, ok := opened(config.GetClusterType().GetTypedConfig()).(*aggregatev3.ClusterConfig); ok {
		c.parts = parts.GetClusters()
	}
	c.listedAt = at.add("load_assignment", "endpoints")
	if !c.assign(assigned) && config.GetLoadAssignment() != nil {
		c.endpoints, c.resolved = endpointsOf(at.add("load_assignment"), config.GetLoadAssignment())
	}
	return c
}

// endpointsOf returns an assignment's endpoints with an IP address, and whether all have one.
func endpointsOf(at Path, a *endpointv3.ClusterLoadAssignment) (list []endpoint, all bool) {
	all = true
	for i, locality := range a.GetEndpoints() {
		for j, lb := range locality.GetLbEndpoints() {
			socket := lb.GetEndpoint().GetAddress().GetSocketAddress()
			ip, err := netip.ParseAddr(socket.GetAddress())
			if err != nil {
				all = false
				continue
			}
			list = append(list, endpoint{
				at:      at.add("endpoints", i, "lb_endpoints", j),
				address: netip.AddrPortFrom(ip.Unmap(), uint16(socket.GetPortValue())).String(), health: lb.GetHealthStatus(),
			})
		}
	}
	return list, all
}

// cluster returns the named cluster; nil if there is none.
func (e *Envoy) cluster(name string) *cluster {
	for _, c := range e.clusters {
		if c.config.GetName() == name {
			return c
		}
	}
	return nil
}

// withParts returns the named cluster and the clusters that form it.
func (e *Envoy) withParts(name string) []*cluster {
	c := e.cluster(name)
	if c == nil {
		return nil
	}
	all := []*cluster{c}
	for _, part := range c.parts {
		if p := e.cluster(part); p != nil {
			all = append(all, p)
		}
	}
	return all
}

// isHTTP2 reports whether requests share a connection to the cluster.
func (c *cluster) isHTTP2() bool {
	return c.options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil || c.config.GetHttp2ProtocolOptions() != nil //nolint:staticcheck // it is deprecated, and still in use
}

// originalHeader returns the destination header of an ORIGINAL_DST cluster; "" if it reads none.
func (c *cluster) originalHeader() string {
	lb := c.config.GetOriginalDstLbConfig()
	if c.config.GetType() != clusterv3.Cluster_ORIGINAL_DST || !lb.GetUseHttpHeader() {
		return ""
	}
	if name := lb.GetHttpHeaderName(); name != "" {
		return strings.ToLower(name)
	}
	return "x-envoy-original-dst-host"
}
