package extproc

import (
	"context"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"

	"github.com/weir-epp/weir/pkg/request"
)

// The role of a filter in Envoy's configuration: grpc_service.initial_metadata of the ext_proc filter sets this key,
// which no client can reach (ADR 0039). Without it the first message decides.
const (
	roleKey  = "x-weir-role"
	roleMain = "main"
	roleGate = "gate"
)

// isGate reports whether a stream belongs to a first-token gate. The role alone does not suffice: without the modes of
// a gate, held response headers would never be released.
func (s *shared) isGate(ctx context.Context, first *extprocv3.ProcessingRequest) bool {
	if first.GetResponseHeaders() == nil || first.GetObservabilityMode() {
		return false
	}
	var role string
	if values := metadata.ValueFromIncomingContext(ctx, roleKey); len(values) > 0 {
		role = values[0]
	}
	able := canHold(first.GetProtocolConfig())
	switch role {
	case "":
	case roleMain:
		return false
	case roleGate:
		if !able {
			s.once.warn(s.log, "gate modes", "a filter has the role of the first-token gate but cannot hold response headers, so "+
				"they pass: set send_body_without_waiting_for_header_response: true, request_body_mode: NONE and "+
				"response_body_mode: STREAMED in it")
		}
	default:
		s.once.warn(s.log, "role", "a filter has an unknown role in its initial_metadata, which is ignored: use main or gate",
			"key", roleKey, "role", role)
	}
	return able
}

// canHold reports whether Envoy sends response bodies while their headers wait for a reply. Only a gate is configured
// that way. A main stream can also begin with response headers, if Envoy itself responds to the client.
func canHold(p *extprocv3.ProtocolConfiguration) bool {
	return p.GetSendBodyWithoutWaitingForHeaderResponse() &&
		p.GetRequestBodyMode() == modev3.ProcessingMode_NONE && p.GetResponseBodyMode() == modev3.ProcessingMode_STREAMED
}

// firstState returns the state of a main stream that begins with the given message.
func (s *shared) firstState(first *extprocv3.ProcessingRequest) state {
	switch {
	case first.GetObservabilityMode():
		s.once.warn(s.log, "observability", "the filter is in observability mode: nothing is queued or picked")
		return observed
	case first.GetRequestHeaders() == nil:
		if first.GetResponseHeaders() == nil {
			s.once.warn(s.log, "no headers", "a stream does not begin with headers: set request_header_mode: SEND")
		}
		return foreign
	case placedBefore(first.GetMetadataContext()):
		s.metrics.placedBefore.Inc()
		s.once.warn(s.log, "placed before", "a request has its destination already, from an ext_proc filter before this one: "+
			"it is passed on as it is, neither queued nor counted here. Keep one of the filters: look for a second ext_proc "+
			"filter in the listener, its routes and the gateway's policies that leads to Weir or another endpoint picker")
		return preplaced
	}
	return fresh
}

// placedBefore reports whether an earlier filter has named the destination: another filter of Weir, or another endpoint
// picker. If two filters asked Weir to admit the same request, the first leases would use up the stock and the second
// ones would wait for ever (ADR 0018). Clients cannot write dynamic metadata.
func placedBefore(m *corev3.Metadata) bool {
	return m.GetFilterMetadata()[destinationNamespace].GetFields()[request.DestinationHeader] != nil
}

// modes are the two body modes of a stream.
type modes struct {
	request     request.BodyMode
	requestSent modev3.ProcessingMode_BodySendMode // the same, as Envoy names it
	response    modev3.ProcessingMode_BodySendMode
	// showsResponse is set if response bodies come here in parts: in FULL_DUPLEX_STREAMED, where they must be sent back
	// and echoesResponse is also set, and in STREAMED, where Envoy keeps each part until it is acknowledged.
	showsResponse, echoesResponse bool
}

// fullDuplex is the protocol configuration of a gateway with FULL_DUPLEX_STREAMED both ways.
var fullDuplex = &extprocv3.ProtocolConfiguration{
	RequestBodyMode: modev3.ProcessingMode_FULL_DUPLEX_STREAMED, ResponseBodyMode: modev3.ProcessingMode_FULL_DUPLEX_STREAMED,
}

// modesOf reads the modes from the first message. Without stated modes it takes those assumed by the configuration, or
// modes whose replies work everywhere but in FULL_DUPLEX_STREAMED, since they do not need the body.
func modesOf(first *extprocv3.ProcessingRequest, assumeFullDuplex bool) (m modes, known bool) {
	p := first.GetProtocolConfig()
	if p == nil && assumeFullDuplex {
		p = fullDuplex
	}
	m.requestSent, m.response = p.GetRequestBodyMode(), p.GetResponseBodyMode()
	m.echoesResponse = m.response == modev3.ProcessingMode_FULL_DUPLEX_STREAMED || m.response == modev3.ProcessingMode_GRPC
	m.showsResponse = m.echoesResponse || m.response == modev3.ProcessingMode_STREAMED
	switch m.requestSent {
	case modev3.ProcessingMode_STREAMED:
		m.request = request.Streamed
	case modev3.ProcessingMode_BUFFERED:
		m.request = request.Buffered
	case modev3.ProcessingMode_BUFFERED_PARTIAL:
		m.request = request.Partial
	case modev3.ProcessingMode_FULL_DUPLEX_STREAMED, modev3.ProcessingMode_GRPC:
		m.request = request.FullDuplex
	default:
		m.request = request.None
	}
	return m, p != nil
}

// canOverride reports whether the reply to the request headers can override the filter's mode.
func (m modes) canOverride() bool {
	return m.request == request.Buffered || m.request == request.Partial || m.request == request.Streamed
}
