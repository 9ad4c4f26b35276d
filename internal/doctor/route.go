package doctor

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// routeConfig is a route configuration and its place.
type routeConfig struct {
	at     Path
	config *routev3.RouteConfiguration
}

// route is a way to a cluster: a route, or one of the weighted clusters of a route.
type route struct {
	at      Path // of the route
	config  *routev3.Route
	hostAt  Path
	host    *routev3.VirtualHost
	cluster string // "" if it is chosen by each request
	// The configurations of filters, from the least specific to the most specific.
	layers []layer
}

// layer has configurations of filters by their names.
type layer struct {
	at      Path
	configs map[string]*anypb.Any
}

// override is a filter's configuration in a layer.
type override struct {
	at     Path
	config proto.Message // nil: not known
}

const perFilter = "typed_per_filter_config"

// routes returns the routes that lead to clusters.
func (c *routeConfig) routes() []*route {
	all := []*route{}
	for h, host := range c.config.GetVirtualHosts() {
		hostAt := c.at.add("virtual_hosts", h)
		for i, config := range host.GetRoutes() {
			action := config.GetRoute()
			if action == nil {
				continue // Envoy's own answer, or a redirect
			}
			at := hostAt.add("routes", i)
			base := route{at: at, config: config, hostAt: hostAt, host: host, cluster: action.GetCluster(), layers: []layer{
				{c.at.add(perFilter), c.config.GetTypedPerFilterConfig()},
				{hostAt.add(perFilter), host.GetTypedPerFilterConfig()},
				{at.add(perFilter), config.GetTypedPerFilterConfig()},
			}}
			weighted := action.GetWeightedClusters().GetClusters()
			if len(weighted) == 0 {
				all = append(all, &base)
			}
			for w, part := range weighted {
				own := base
				own.cluster = part.GetName()
				own.layers = append(own.layers[:3:3], layer{
					at.add("route", "weighted_clusters", "clusters", w, perFilter), part.GetTypedPerFilterConfig(),
				})
				all = append(all, &own)
			}
		}
	}
	return all
}

// of returns a filter's overrides on this route, from the least to the most specific, and whether the filter is off. An
// override switches a disabled filter on.
func (r *route) of(f *filter) (overrides []override, off bool) {
	off = f.disabled
	if r == nil {
		return nil, off
	}
	for _, l := range r.layers {
		entry, ok := l.configs[f.name]
		if !ok {
			continue
		}
		own := override{l.at.add(f.name), opened(entry)}
		off = false
		if wrapped, ok := own.config.(*routev3.FilterConfig); ok {
			own = override{own.at.add("config"), opened(wrapped.GetConfig())}
			if off = wrapped.GetDisabled(); off {
				continue
			}
		}
		overrides = append(overrides, own)
	}
	return overrides, off
}

// last returns the most specific override; nil if there is none.
func last(overrides []override) proto.Message {
	if len(overrides) == 0 {
		return nil
	}
	return overrides[len(overrides)-1].config
}
