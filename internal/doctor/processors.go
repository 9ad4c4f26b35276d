package doctor

import (
	"fmt"
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
