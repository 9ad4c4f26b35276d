package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// tlsToWeir checks that Envoy connects to Weir with or without TLS as Weir serves.
func tlsToWeir(e *Envoy, w Weir, report reporter) {
	if w.TLS == nil {
		return
	}
	const socket = "transport_socket: { name: envoy.transport_sockets.tls, typed_config: { \"@type\": " +
		"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: { alpn_protocols: [h2] } } }"
	for _, c := range w.processors(e) {
		if len(c.parts) > 0 || len(c.config.GetTransportSocketMatches()) > 0 || c.config.GetTransportSocketMatcher() != nil {
			continue
		}
		at := c.at.add("transport_socket")
		context, isTLS := opened(c.config.GetTransportSocket().GetTypedConfig()).(*tlsv3.UpstreamTlsContext)
		isTLS = isTLS || strings.Contains(c.config.GetTransportSocket().GetName(), "tls")
		common := context.GetCommonTlsContext()
		switch {
		case *w.TLS && !isTLS:
			report(at, "none, and Weir serves TLS (--secure-serving)", socket)
		case !*w.TLS && isTLS:
			report(at, "TLS, and Weir serves none (--secure-serving=false)", "no transport_socket")
		case isTLS && w.ClientCertificates && context != nil && len(common.GetTlsCertificates()) == 0 &&
			len(common.GetTlsCertificateSdsSecretConfigs()) == 0:
			report(at.add("typed_config", "common_tls_context"), "no certificate of Envoy's, and Weir asks for one (--client-ca-file)",
				"tls_certificates: [{ certificate_chain: { filename: … }, private_key: { filename: … } }]")
		}
	}
}

// portToWeir checks that an endpoint of Weir's cluster has the port at which Weir listens. Others may be other replicas'.
func portToWeir(e *Envoy, w Weir, report reporter) {
	if w.Port == 0 {
		return
	}
	for _, c := range w.processors(e) {
		at, ports := c.ports()
		if len(ports) > 0 && !slices.Contains(ports, uint32(w.Port)) {
			report(at, fmt.Sprintf("%d, and Weir listens at %d (--grpc-port)", ports[0], w.Port), fmt.Sprintf("port_value: %d", w.Port))
		}
	}
}

// ports returns the ports of the cluster's endpoints, and the place of the first; none if they are not in the text.
func (c *cluster) ports() (at Path, ports []uint32) {
	for i, locality := range c.config.GetLoadAssignment().GetEndpoints() {
		for j, lb := range locality.GetLbEndpoints() {
			if socket := lb.GetEndpoint().GetAddress().GetSocketAddress(); socket.GetPortValue() != 0 {
				if ports = append(ports, socket.GetPortValue()); len(ports) == 1 {
					at = c.at.add("load_assignment", "endpoints", i, "lb_endpoints", j, "endpoint", "address", "socket_address", "port_value")
				}
			}
		}
	}
	if ports != nil {
		return at, ports
	}
	for _, e := range c.endpoints { // listed apart from the cluster
		if ap, err := netip.ParseAddrPort(e.address); err == nil {
			ports = append(ports, uint32(ap.Port()))
		}
	}
	return c.listedAt, ports
}

// defaultPanic is Envoy's panic threshold, in percent: with fewer healthy hosts it uses all.
const defaultPanic = 50

// panicThreshold checks the clusters of Weir whose hosts can be unhealthy.
func panicThreshold(e *Envoy, w Weir, report reporter) {
	for _, c := range w.processors(e) {
		if !c.knowsHealth() {
			continue
		}
		value, stated := float64(defaultPanic), " (the default)"
		if v := c.config.GetCommonLbConfig().GetHealthyPanicThreshold(); v != nil {
			value, stated = v.GetValue(), ""
		}
		if value != 0 {
			report(c.at.add("common_lb_config", "healthy_panic_threshold"), fmt.Sprintf("%g%s, with hosts that may be unhealthy", value, stated),
				"common_lb_config: { healthy_panic_threshold: { value: 0 } }")
		}
	}
}

// knowsHealth reports whether the cluster learns that hosts are unhealthy: by checks of its own, or from its endpoints.
func (c *cluster) knowsHealth() bool {
	if len(c.config.GetHealthChecks()) > 0 {
		return true
	}
	for _, own := range c.endpoints {
		switch own.health {
		case corev3.HealthStatus_UNKNOWN, corev3.HealthStatus_HEALTHY:
		default:
			return true
		}
	}
	return false
}
