package doctor

import "slices"

// Checks returns all checks, in the order in which they run and are documented.
func Checks() []Check {
	return slices.Concat(envoyChecks(), clusterChecks())
}

// envoyChecks are the checks of an Envoy's configuration.
func envoyChecks() []Check {
	return []Check{
		{
			ID:    "circuit-breaker",
			Title: "an Envoy circuit breaker is below the number of requests that Weir may hold",
			Why: "Each waiting or running request is one request on the cluster of Weir, and each running one on that of the model " +
				"servers. Requests beyond the limit, 1,024 by default, get 500 or 503, or pass Weir.",
			Fix:   "Raise max_requests, max_pending_requests and max_connections of both clusters to a million.",
			Harm:  []string{"TestDefaultCircuitBreakerIsNoticed"},
			envoy: circuitBreakers,
		},
		{
			ID:    "message-timeout",
			Title: "the message timeout ends before the queue's TTL does",
			Why: "Envoy gives up a waiting request at message_timeout (200 ms by default), and ignores a longer timeout that Weir asks " +
				"for unless max_message_timeout allows it: the request passes Weir in fail-open, and gets 504 in fail-closed.",
			Fix:   "Set message_timeout: 60s and max_message_timeout: 3600s.",
			Harm:  []string{"TestMessageTimeout"},
			envoy: messageTimeout,
		},
		{
			ID:    "stream-idle-timeout",
			Title: "the stream idle timeout ends before the queue's TTL does",
			Why:   "A request in the queue is an idle stream to Envoy, which answers 504 after this time (300 s by default).",
			Fix:   "Set stream_idle_timeout: 3600s on the connection manager, or the idle_timeout of the route.",
			Harm:  []string{"TestIdleTimeoutEndsAHold"},
			envoy: streamIdleTimeout,
		},
		{
			ID:    "response-trailers",
			Title: "the filter is not sent response trailers",
			Why: "With response_body_mode NONE, only response_trailer_mode SEND keeps the stream open until the answer has ended. " +
				"Without it Weir takes requests for complete that still run, and sends too many to the engines.",
			Fix: "Set response_trailer_mode: SEND; or allow_mode_override: true in the modes BUFFERED, BUFFERED_PARTIAL and STREAMED, " +
				"where Weir asks for trailers itself.",
			Harm:  []string{"TestStreamWithoutTrailerModeEndsEarly"},
			envoy: responseTrailers,
		},
		{
			ID:    "client-destination",
			Title: "clients can choose the destination",
			Why:   "In fail-open, while Weir is away, a client's own header chooses the model server; with ORIGINAL_DST any address.",
			Fix:   "Remove the header before ext_proc, with the filter header_mutation.",
			Harm:  []string{"TestForgedDestination"},
			envoy: clientDestination,
		},
		{
			ID:    "client-identity",
			Title: "clients can send a header that Weir believes",
			Why:   "A client that names its flow has as many fair shares as it invents names; a client that states its cost pays less than others.",
			Fix:   "Remove the header before ext_proc, and then set it from a verified identity.",
			Harm:  []string{"TestInventedNamesHaveAShareEach"},
			envoy: clientIdentity,
		},
		{
			ID:    "buffer-filter",
			Title: "no buffer filter comes before ext_proc",
			Why:   "A client that sends only a part of its body holds a slot of a model server for as long as it likes.",
			Fix:   "Add envoy.filters.http.buffer before ext_proc, after authentication.",
			Harm:  []string{"TestHalfSentRequestsWithoutTheFilter"},
			envoy: bufferFilter,
		},
		{
			ID:    "buffer-limit",
			Title: "Envoy's buffer is smaller than the largest body that Weir accepts",
			Why:   "Envoy answers bodies above its limit with 413, though limits.maxBodyBytes permits them.",
			Fix:   "Give the buffer, the listener and limits.maxBodyBytes the same size.",
			Harm:  []string{"TestBodyOverTheBufferLimit", "TestBodyOverTheBufferFilter"},
			envoy: bufferLimit,
		},
		{
			ID:    "tls-to-weir",
			Title: "one of Envoy and Weir speaks TLS, and the other does not",
			Why:   "Envoy cannot open a stream: every request goes past Weir in fail-open, and gets an error in fail-closed.",
			Fix:   "Give the cluster a transport_socket of TLS, or start epp with --secure-serving=false.",
			Harm:  []string{"TestPlaintextEnvoyAtTheTLSPort", "TestTLSToAPlaintextProcessor", "TestEnvoyNeedsACertificate"},
			envoy: tlsToWeir,
		},
		{
			ID:    "port-to-weir",
			Title: "Envoy's cluster of Weir has another port than Weir",
			Why:   "No stream reaches this Weir: every request passes it in fail-open, and gets an error in fail-closed.",
			Fix:   "Give the cluster's endpoint the port of --grpc-port.",
			Harm:  []string{"TestNothingAtTheProcessorsPort"},
			envoy: portToWeir,
		},
		{
			ID:    "endpoint-only-in-weir",
			Title: "Envoy lacks an endpoint that Weir has",
			Why:   "When Weir picks it, the fallback policy sends the request elsewhere, past the bounds of that server.",
			Fix:   "Add the endpoint to the cluster, or remove it from Weir.",
			Harm:  []string{"TestEndpointThatEnvoyLacks"},
			envoy: endpointsOnlyInWeir,
		},
		{
			ID:    "endpoint-only-in-envoy",
			Title: "Weir lacks an endpoint that Envoy has",
			Why:   "It gets no requests from Weir, and in fail-open it gets uncounted requests.",
			Fix:   "Add the endpoint to Weir, or remove it from the cluster.",
			Harm:  []string{"TestEndpointThatWeirLacks"},
			envoy: endpointsOnlyInEnvoy,
		},
		{
			ID:    "original-dst-fail-open",
			Title: "the filter fails open in front of an ORIGINAL_DST cluster",
			Why: "While Weir is away nothing names a destination but the client: its own header reaches any address, Envoy's admin " +
				"interface too, and requests without it get 503.",
			Fix:   "Use a cluster with override_host, or set failure_mode_allow: false.",
			Harm:  []string{"TestOriginalDestination"},
			envoy: originalFailsOpen,
		},
		{
			ID:    "original-dst-fallbacks",
			Title: "Weir names several endpoints to an ORIGINAL_DST cluster",
			Why:   "Such a cluster accepts one address: a list gets 503.",
			Fix:   "Set scheduling.fallbacks: 0, or use a cluster with override_host.",
			Harm:  []string{"TestOriginalDestination"},
			envoy: originalFallbacks,
		},
		{
			ID:    "metadata-not-received",
			Title: "Envoy does not accept metadata that it needs from Weir",
			Why:   "Envoy drops dynamic metadata of other namespaces: destination, access log and gate lack it.",
			Fix:   "Add the namespace to metadata_options.receiving_namespaces.untyped.",
			Harm:  []string{"TestMetadataThatIsNotReceived"},
			envoy: metadataNotReceived,
		},
		{
			ID:    "metadata-not-forwarded",
			Title: "Envoy does not send metadata that Weir reads",
			Why:   "Weir does not learn the tenant, the subset, the usage, the request at the gate or the endpoint that served.",
			Fix:   "Add the namespace to metadata_options.forwarding_namespaces.",
			Harm:  []string{"TestMetadataThatIsNotForwarded"},
			envoy: metadataNotForwarded,
		},
		{
			ID:    "retry-policy",
			Title: "Weir names several endpoints, and the route has no retry policy",
			Why:   "Envoy uses the rest of the list only for retries: if the first endpoint cannot be reached, the client gets 503.",
			Fix:   "Give the route a retry_policy on connect-failure, or set scheduling.fallbacks: 0.",
			Harm:  []string{"TestListWithoutRetries"},
			envoy: retryPolicy,
		},
		{
			ID:    "gate-timeout",
			Title: "the first-token gate opens too early",
			Why:   "After its message_timeout (200 ms by default) the headers reach the client without a token, and the request cannot be preempted.",
			Fix:   "Set message_timeout: 600s on the gate.",
			Harm:  []string{"TestGateTimesOut"},
			envoy: gateTimeout,
		},
		{
			ID:    "upstream-buffer",
			Title: "an upstream ext_proc filter streams answers to a cluster with a small buffer",
			Why: "Envoy 1.40 crashes when more of an answer waits for the processor than the buffer of the processor's cluster holds (1 MiB " +
				"by default).",
			Fix:   "Set per_connection_buffer_limit_bytes: 268435456 on that cluster, or do without the filter.",
			Harm:  []string{"TestUpstreamFilterWithASmallBuffer"},
			envoy: upstreamBuffer,
		},
		{
			ID:    "two-filters",
			Title: "two ext_proc filters use one Weir",
			Why:   "Weir passes the second stream of each request on, but both streams cost processor time.",
			Fix:   "Remove one filter, unless it is the first-token gate, marked by x-weir-role: gate.",
			Harm:  []string{"TestTwoFilters"},
			envoy: twoFilters,
		},
		{
			ID:    "usage-side",
			Title: "ai_protocol_manager reads usage as a filter of the listener",
			Why:   "The usage of answers that arrive in one piece does not reach Weir, which charges its estimates instead.",
			Fix:   "Move the filter to the http_filters of the model servers' cluster, before upstream_codec.",
			Harm:  []string{"TestUsageOnTheWrongSide"},
			envoy: usageSide,
		},
		{
			ID:    "panic-threshold",
			Title: "Envoy sends streams to replicas of Weir that are not healthy",
			Why: "With the default panic threshold a health check changes nothing when most replicas fail it, as followers do: streams go " +
				"to replicas that do not lead.",
			Fix:   "Set common_lb_config: { healthy_panic_threshold: { value: 0 } }.",
			Harm:  []string{"TestEnvoyAndTheProcessorsHealth"},
			envoy: panicThreshold,
		},
	}
}
