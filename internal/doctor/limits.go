package doctor

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	defaultBreaker = 1024
	defaultBuffer  = 1 << 20   // of a listener and of a cluster
	upstreamMargin = 256 << 20 // with this much no answer crashed Envoy 1.40
)

// circuitBreakers checks the clusters of Weir and of the model servers: they need more than the default, and Weir's at
// least the queue's capacity.
func circuitBreakers(e *Envoy, w Weir, report reporter) {
	check := func(c *cluster, priority corev3.RoutingPriority, least uint32) {
		at, threshold := c.threshold(priority)
		low := func(field string, v *wrapperspb.UInt32Value) string {
			switch {
			case v == nil:
				return fmt.Sprintf("%s: %d (the default)", field, defaultBreaker)
			case v.GetValue() < least:
				return fmt.Sprintf("%s: %d", field, v.GetValue())
			}
			return ""
		}
		var found []string
		add := func(text string) {
			if text != "" {
				found = append(found, text)
			}
		}
		add(low("max_requests", threshold.GetMaxRequests()))
		add(low("max_pending_requests", threshold.GetMaxPendingRequests()))
		if !c.isHTTP2() { // requests of HTTP/2 share connections
			add(low("max_connections", threshold.GetMaxConnections()))
		}
		if len(found) > 0 {
			report(at, strings.Join(found, ", "), "circuit_breakers: { thresholds: [{ max_connections: 1000000, max_pending_requests: "+
				"1000000, max_requests: 1000000 }] }")
		}
	}
	room := uint32(min(max(w.Document.FairRequestQueue.TotalCapacity, defaultBreaker+1), 1_000_000))
	for _, c := range w.processors(e) {
		check(c, corev3.RoutingPriority_DEFAULT, room)
	}
	for _, u := range w.of(e, false) {
		if c := u.server(e); c != nil {
			check(c, u.route.config.GetRoute().GetPriority(), defaultBreaker+1)
		}
	}
}

// threshold returns a priority's circuit breakers and their place; nil: none are configured.
func (c *cluster) threshold(priority corev3.RoutingPriority) (Path, *clusterv3.CircuitBreakers_Thresholds) {
	at := c.at.add("circuit_breakers")
	for i, t := range c.config.GetCircuitBreakers().GetThresholds() {
		if t.GetPriority() == priority {
			return at.add("thresholds", i), t
		}
	}
	return at, nil
}

// buffer returns the limit of the buffer filter that the requests have passed, and the limit's place; ok is false if
// there is none.
func (u use) buffer() (limit uint32, at Path, ok bool) {
	for _, f := range u.manager.filters[:u.place] {
		config, is := f.config.(*bufferv3.Buffer)
		if !is {
			continue
		}
		overrides, off := u.route.of(f)
		limit, at = config.GetMaxRequestBytes().GetValue(), f.at.add("typed_config", "max_request_bytes")
		for _, o := range overrides {
			own, is := o.config.(*bufferv3.BufferPerRoute)
			if off = is && own.GetDisabled(); is && !off {
				limit, at = own.GetBuffer().GetMaxRequestBytes().GetValue(), o.at.add("buffer", "max_request_bytes")
			}
		}
		if !off {
			return limit, at, true
		}
	}
	return 0, nil, false
}

// bufferLimit checks Envoy's limit on the bodies for Weir: the buffer filter's, or else that of the buffer that gathers
// them.
func bufferLimit(e *Envoy, w Weir, report reporter) {
	most := w.Document.Limits.MaxBodyBytes
	for _, u := range w.of(e, false) {
		limit, at, ok := u.buffer()
		switch mode := u.config.GetProcessingMode().GetRequestBodyMode(); {
		case ok && int64(limit) < most:
			report(at, fmt.Sprintf("%d, and limits.maxBodyBytes %d", limit, most), fmt.Sprintf("max_request_bytes: %d", most))
		case !ok && mode == extprocv3.ProcessingMode_BUFFERED:
			if gathered, at, change := u.gathered(); gathered < uint64(most) {
				report(at, fmt.Sprintf("%d, and limits.maxBodyBytes %d", gathered, most), fmt.Sprintf("%s: %d", change, most))
			}
		}
	}
}

// gathered returns the largest request body that Envoy gathers, and the limit's place and key.
func (u use) gathered() (limit uint64, at Path, key string) {
	const own = "request_body_buffer_limit"
	if u.route != nil {
		if v := u.route.config.GetRequestBodyBufferLimit(); v != nil {
			return v.GetValue(), u.route.at.add(own), own
		}
		if v := u.route.host.GetRequestBodyBufferLimit(); v != nil {
			return v.GetValue(), u.route.hostAt.add(own), own
		}
	}
	const key2 = "per_connection_buffer_limit_bytes"
	at = u.manager.listenerAt.add(key2)
	if v := u.manager.listener.GetPerConnectionBufferLimitBytes(); v != nil {
		return uint64(v.GetValue()), at, key2
	}
	return defaultBuffer, at, key2
}

// upstreamBuffer checks the clusters that get answers streamed by upstream ext_proc filters: Envoy 1.40 crashes when
// the connection's buffer is full.
func upstreamBuffer(e *Envoy, _ Weir, report reporter) {
	for _, from := range e.clusters {
		for _, f := range from.filters {
			config, ok := f.config.(*extprocv3.ExternalProcessor)
			if !ok || f.disabled || config.GetProcessingMode().GetResponseBodyMode() != extprocv3.ProcessingMode_STREAMED {
				continue
			}
			for _, c := range e.withParts(config.GetGrpcService().GetEnvoyGrpc().GetClusterName()) {
				if len(c.parts) > 0 {
					continue
				}
				const key = "per_connection_buffer_limit_bytes"
				limit := uint32(defaultBuffer)
				found := fmt.Sprintf("%d (the default)", limit)
				if v := c.config.GetPerConnectionBufferLimitBytes(); v != nil {
					limit = v.GetValue()
					found = fmt.Sprint(limit)
				}
				if limit < upstreamMargin {
					report(c.at.add(key), fmt.Sprintf("%s, and filter %s of cluster %s streams answers there", found, f.name,
						from.config.GetName()), fmt.Sprintf("%s: %d", key, upstreamMargin))
				}
			}
		}
	}
}
