package envoyrun

import (
	"errors"
	"fmt"
)

const (
	usageFilter    = "envoy.filters.http.ai_protocol_manager"
	usageNamespace = "envoy.ai.token_usage"
)

// ReadUsage is an Edit that makes Envoy read the usage of answers and send it to Weir, as in the shipped
// recommended.yaml. Envoy recognises answers by their shape: the routes declare no API.
func ReadUsage(b Bootstrap) error {
	with, err := Load("recommended")
	if err != nil {
		return err
	}
	to, namespaces := b.upstream(), b.forwarded()
	if to == nil || namespaces == nil {
		return errors.New("envoyrun: the configuration has no place for the usage")
	}
	to["http_filters"] = with.upstream()["http_filters"]
	namespaces["typed"] = with.forwarded()["typed"]
	return nil
}

// WithoutUsage is an Edit that removes ReadUsage's additions, and the routes' declared APIs.
func WithoutUsage(b Bootstrap) error {
	if named(List(b.upstream(), "http_filters"), usageFilter) == nil || len(List(b.forwarded(), "typed")) == 0 {
		return fmt.Errorf("envoyrun: the configuration has no %s that tells Weir %s", usageFilter, usageNamespace)
	}
	delete(b.upstream(), "http_filters")
	delete(b.forwarded(), "typed")
	for _, route := range b.routes() {
		delete(Object(route, "typed_per_filter_config"), usageFilter)
	}
	return nil
}

// upstream returns the HTTP options of the model servers' cluster.
func (b Bootstrap) upstream() map[string]any {
	return Object(b.Cluster(ModelServersCluster), "typed_extension_protocol_options",
		"envoy.extensions.upstreams.http.v3.HttpProtocolOptions")
}

// forwarded returns the metadata that Envoy sends to Weir.
func (b Bootstrap) forwarded() map[string]any {
	return Object(b.Filter(ExtProcFilter), "metadata_options", "forwarding_namespaces")
}
