package doctor

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// The changes of a shipped configuration that make traps.

// type edit changes a bootstrap.
type edit = func(envoyrun.Bootstrap) error

// cluster changes a field of a cluster; nil deletes it.
func setCluster(name, field string, value any) edit {
	return func(b envoyrun.Bootstrap) error { set(b.Cluster(name), field, value); return nil }
}

// addReplica adds an endpoint to Weir's cluster.
func addReplica(port int) edit {
	return func(b envoyrun.Bootstrap) error {
		locality := envoyrun.Object(b.Cluster(weir), "load_assignment")["endpoints"].([]any)[0].(map[string]any)
		locality["lb_endpoints"] = append(locality["lb_endpoints"].([]any), map[string]any{"endpoint": map[string]any{
			"address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": port}},
		}})
		return nil
	}
}

func set(object map[string]any, field string, value any) {
	if value == nil {
		delete(object, field)
		return
	}
	object[field] = value
}

// setFilter changes a field of an HTTP filter's configuration, or of an object in it.
func setFilter(name string, value any, path ...string) edit {
	return func(b envoyrun.Bootstrap) error {
		object := b.Filter(name)
		for _, key := range path[:len(path)-1] {
			object = envoyrun.Object(object, key)
		}
		set(object, path[len(path)-1], value)
		return nil
	}
}

func setManager(field string, value any) edit {
	return func(b envoyrun.Bootstrap) error { set(b.ConnectionManager(), field, value); return nil }
}

func setRoute(field string, value any) edit {
	return func(b envoyrun.Bootstrap) error { set(b.Route(), field, value); return nil }
}

func setListener(field string, value any) edit {
	return func(b envoyrun.Bootstrap) error { set(b.Listener(), field, value); return nil }
}

// onRoute overrides the ext_proc filter on all routes.
func onRoute(overrides map[string]any) edit {
	return func(b envoyrun.Bootstrap) error {
		host := envoyrun.Object(b.ConnectionManager(), "route_config", "virtual_hosts", 0)
		host["typed_per_filter_config"] = map[string]any{envoyrun.ExtProcFilter: map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute", "overrides": overrides,
		}}
		return nil
	}
}

// originalDst makes the model servers' cluster take any address.
func originalDst(b envoyrun.Bootstrap) error {
	c := b.Cluster(envoyrun.ModelServersCluster)
	delete(c, "eds_cluster_config")
	delete(c, "load_balancing_policy")
	c["type"], c["lb_policy"] = "ORIGINAL_DST", "CLUSTER_PROVIDED"
	c["original_dst_lb_config"] = map[string]any{"use_http_header": true, "http_header_name": "x-gateway-destination-endpoint"}
	return nil
}

// static lists these addresses in the model servers' cluster itself.
func static(addresses ...string) edit {
	return func(b envoyrun.Bootstrap) error {
		var hosts []any
		for _, address := range addresses {
			host, port, _ := strings.Cut(address, ":")
			hosts = append(hosts, map[string]any{"endpoint": map[string]any{"address": map[string]any{
				"socket_address": map[string]any{"address": host, "port_value": port},
			}}})
		}
		c := b.Cluster(envoyrun.ModelServersCluster)
		delete(c, "eds_cluster_config")
		c["type"] = "STATIC"
		c["load_assignment"] = map[string]any{"cluster_name": c["name"], "endpoints": []any{map[string]any{"lb_endpoints": hosts}}}
		return nil
	}
}

// second adds a copy of a filter behind ext_proc.
func second(change func(filter map[string]any)) edit {
	return func(b envoyrun.Bootstrap) error {
		manager := b.ConnectionManager()
		filters := envoyrun.List(manager, "http_filters")
		at := slices.Index(b.Filters(), envoyrun.ExtProcFilter)
		text, err := json.Marshal(filters[at])
		if err != nil {
			return err
		}
		var copied map[string]any
		if err := json.Unmarshal(text, &copied); err != nil {
			return err
		}
		copied["name"] = "a.second.one"
		change(copied)
		manager["http_filters"] = slices.Insert(filters, at+1, any(copied))
		return nil
	}
}

// moveUsage moves the filter that reads usage from the cluster to the listener, or its part that reads requests.
func moveUsage(request bool) edit {
	return func(b envoyrun.Bootstrap) error {
		options := envoyrun.Object(b.Cluster(envoyrun.ModelServersCluster), "typed_extension_protocol_options", optionsKey)
		filter := envoyrun.Object(options, "http_filters", 0)
		if request {
			filter = map[string]any{"name": "envoy.filters.http.ai_protocol_manager", "typed_config": map[string]any{
				"@type":            "type.googleapis.com/envoy.extensions.filters.http.ai_protocol_manager.v3.AiProtocolManager",
				"request_handling": map[string]any{"reserialize_body": "DISABLE"},
			}}
		} else {
			delete(options, "http_filters")
		}
		manager := b.ConnectionManager()
		manager["http_filters"] = slices.Insert(envoyrun.List(manager, "http_filters"), 0, any(filter))
		return nil
	}
}

// readsRequests lets ai_protocol_manager read requests before ext_proc in place of the buffer filter, on the routes
// that declare requests: all or none.
func readsRequests(declared bool) edit {
	return envoyrun.Edits(moveUsage(true), envoyrun.WithoutFilter(envoyrun.BufferFilter),
		setFilter(ext, []any{"envoy.ai.token_usage", "envoy.ai.request_info"}, "metadata_options", "forwarding_namespaces", "typed"),
		func(b envoyrun.Bootstrap) error {
			host := envoyrun.Object(b.ConnectionManager(), "route_config", "virtual_hosts", 0)
			own := map[string]any{
				"@type":    "type.googleapis.com/envoy.extensions.filters.http.ai_protocol_manager.v3.AiProtocolManagerPerRoute",
				"response": map[string]any{"llm_protocol": "OPENAI_CHAT_COMPLETIONS"},
			}
			if declared {
				own["request"] = own["response"]
			}
			for _, route := range envoyrun.List(host, "routes") {
				envoyrun.Object(route)["typed_per_filter_config"] = map[string]any{"envoy.filters.http.ai_protocol_manager": own}
			}
			return nil
		})
}

// upstream adds an ext_proc filter to the model servers' cluster, and gives Weir's a buffer.
func upstream(mode string, limit any) edit {
	return func(b envoyrun.Bootstrap) error {
		c := b.Cluster(envoyrun.ModelServersCluster)
		set(b.Cluster(envoyrun.WeirCluster), "per_connection_buffer_limit_bytes", limit)
		options := envoyrun.Object(c, "typed_extension_protocol_options", optionsKey)
		options["http_filters"] = slices.Insert(envoyrun.List(options, "http_filters"), 0, any(map[string]any{
			"name": "attempts", "typed_config": map[string]any{
				"@type":           "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
				"grpc_service":    map[string]any{"envoy_grpc": map[string]any{"cluster_name": "weir"}},
				"processing_mode": map[string]any{"response_body_mode": mode},
			},
		}))
		return nil
	}
}

func breakers(n int) any { return thresholds(n, n) }

func thresholds(requests, connections int) any {
	return map[string]any{"thresholds": []any{map[string]any{
		"max_connections": connections, "max_pending_requests": requests, "max_requests": requests,
	}}}
}

func tlsSocket(more map[string]any) any {
	common := map[string]any{"alpn_protocols": []any{"h2"}}
	maps.Copy(common, more)
	return map[string]any{"name": "a", "typed_config": map[string]any{
		"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "common_tls_context": common,
	}}
}

func checked(threshold any) edit {
	return envoyrun.Edits(
		setCluster(weir, "health_checks", []any{map[string]any{
			"timeout": "1s", "interval": "1s", "unhealthy_threshold": 1, "healthy_threshold": 1, "grpc_health_check": map[string]any{},
		}}),
		setCluster(weir, "common_lb_config", threshold),
	)
}

func panicAt(value float64) any {
	return map[string]any{"healthy_panic_threshold": map[string]any{"value": value}}
}

func mode(key, value string) edit { return setFilter(ext, value, "processing_mode", key) }

func keep(names ...string) edit { return envoyrun.KeepHeader(names...) }

// noOverride lets Envoy ignore overrides of the mode.
var noOverride = setFilter(ext, false, "allow_mode_override")

// trailerless keeps Envoy from sending response trailers, whatever Weir asks for.
var trailerless = envoyrun.Edits(mode("response_trailer_mode", "SKIP"), noOverride)

var bodyless = envoyrun.Edits(mode("request_body_mode", "NONE"), noOverride)

// setsTenant sets the header of the tenant in Envoy instead of removing it.
func setsTenant(action string) edit {
	return func(b envoyrun.Bootstrap) error {
		mutations := envoyrun.Object(b.Filter(envoyrun.HeaderFilter), "mutations")
		if err := keep("x-llm-d-inference-fairness-id")(b); err != nil {
			return err
		}
		mutations["request_mutations"] = append(envoyrun.List(mutations, "request_mutations"), map[string]any{"append": map[string]any{
			"header":        map[string]any{"key": "X-LLM-D-Inference-Fairness-ID", "value": "%DOWNSTREAM_PEER_SUBJECT%"},
			"append_action": action,
		}})
		return nil
	}
}

// perRoute overrides the buffer filter on the first route.
func perRoute(override map[string]any) edit {
	return func(b envoyrun.Bootstrap) error {
		override["@type"] = "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute"
		route := envoyrun.Object(b.ConnectionManager(), "route_config", "virtual_hosts", 0, "routes", 0)
		route["typed_per_filter_config"] = map[string]any{envoyrun.BufferFilter: override}
		return nil
	}
}

// metadataOnly lets the cluster read the destination from metadata only.
func metadataOnly(b envoyrun.Bootstrap) error {
	policy := envoyrun.Object(b.Cluster(pool), "load_balancing_policy", "policies", 0, "typed_extension_config", "typed_config")
	policy["override_host_sources"] = envoyrun.List(policy, "override_host_sources")[1:]
	return nil
}

// shouted capitalises the headers from which the servers' cluster reads a destination. Envoy ignores the case.
func shouted(b envoyrun.Bootstrap) error {
	policy := envoyrun.Object(b.Cluster(pool), "load_balancing_policy", "policies", 0, "typed_extension_config", "typed_config")
	for _, source := range envoyrun.List(policy, "override_host_sources") {
		of := source.(map[string]any)
		if name, is := of["header"].(string); is {
			of["header"] = strings.ToUpper(name)
		}
	}
	return nil
}

// places returns the findings of a report, a line each.
func places(r Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.ID+" at "+f.Where+": "+f.Found+" -> "+f.Change)
	}
	return all
}
