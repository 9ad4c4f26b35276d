package extproc

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// Two ext_proc filters that lead to the same Weir (one by the listener's configuration and one by an extension's policy,
// say) would each ask for a lease for the same request: with the stock used up by the first ones, the second ones wait for
// ever. So a request that has its destination already is let through as it is (ADR 0018). What tells is dynamic metadata,
// which no client can write: the destination under envoy.lb that an endpoint picker's answer has set, ours or another's.

// placedBefore reports whether the first message of a stream names a destination.
func placedBefore(m *corev3.Metadata) bool {
	return m.GetFilterMetadata()[destinationNamespace].GetFields()[destinationHeader] != nil
}

// notePlacedBefore counts such a stream, and says once what to do.
func (s *Server) notePlacedBefore() {
	s.metrics.placedBefore.Inc()
	s.once.warn(s.log, "placed before", "a request that comes has its destination already, from an ext_proc filter "+
		"before this one: it is passed on as it is, neither queued nor counted here. Keep one of the filters: look for a "+
		"second ext_proc filter in the listener, its routes and the gateway's policies that leads to Weir or another "+
		"endpoint picker")
}

// passPlacedBefore lets such a request go, without any further message where Envoy can be told so.
func (st *stream) passPlacedBefore() error {
	if st.headersAnswered {
		st.unexpected("request headers")
		return st.send(emptyRequestHeaders)
	}
	st.headersAnswered = true
	if st.modes.request == modeFullDuplex || st.modes.echoesResponse() {
		return st.send(emptyRequestHeaders) // nothing can be overridden: what follows is sent back
	}
	return st.send(placedBeforeAnswer)
}

var placedBeforeAnswer = &extprocv3.ProcessingResponse{
	Response: emptyRequestHeaders.Response,
	ModeOverride: &modev3.ProcessingMode{
		RequestBodyMode:     modev3.ProcessingMode_NONE,
		RequestTrailerMode:  modev3.ProcessingMode_SKIP,
		ResponseHeaderMode:  modev3.ProcessingMode_SKIP,
		ResponseBodyMode:    modev3.ProcessingMode_NONE,
		ResponseTrailerMode: modev3.ProcessingMode_SKIP,
	},
}
