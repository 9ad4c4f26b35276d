package extproc

import (
	"fmt"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// state is where a main stream stands. doc.go draws the way of a request through the states.
type state uint8

const (
	fresh           state = iota // a request; its headers are the next message
	arriving                     // its body is still arriving
	deciding                     // it is whole: it is being read, or offered, or waits in the queue
	granted                      // it was admitted; its destination is not yet sent
	placed                       // its destination was sent
	placedNoHeaders              // the same, and Envoy was told not to send the response headers
	holding                      // response headers came, and wait for the first token (FULL_DUPLEX_STREAMED)
	responding                   // the response headers went on to the client: the response is never cut from here on
	abandoned                    // Envoy responded to the client itself while the body was still arriving
	rejected                     // the last message was sent
	foreign                      // not a request of ours: a response that Envoy itself made
	preplaced                    // an earlier filter placed the request; its headers are the next message
	forwarded                    // and its headers were answered
	observed                     // observability mode: nothing is answered
	numStates       = iota
)

// stateLabels are the values of the label "state" in metrics, and of the key "state" in the log.
var stateLabels = [numStates]string{
	fresh: "fresh", arriving: "collecting", deciding: "collecting", granted: "collecting", placed: "placed",
	placedNoHeaders: "placed", holding: "gated", responding: "responding", abandoned: "responding", rejected: "rejected",
	foreign: "foreign", preplaced: "foreign", forwarded: "foreign", observed: "observed",
}

// String returns the label of the state in metrics, which several states share.
func (s state) String() string { return stateLabels[s] }

// following has a bit for each state that may follow a state.
var following = [numStates]uint32{
	fresh:           set(deciding, rejected),
	arriving:        set(deciding, abandoned, rejected),
	deciding:        set(arriving, granted, rejected),
	granted:         set(placed, placedNoHeaders, rejected),
	placed:          set(holding, responding, rejected),
	placedNoHeaders: set(responding, rejected),
	holding:         set(responding, rejected),
	preplaced:       set(forwarded),
}

func set(states ...state) (bits uint32) {
	for _, s := range states {
		bits |= 1 << s
	}
	return bits
}

// enter changes the state. It panics if the next state may not follow.
func (st *mainStream) enter(next state) {
	if following[st.state]>>next&1 == 0 {
		panic(fmt.Sprintf("extproc: state %d after state %d", next, st.state))
	}
	st.state = next
}

// undecided reports whether a request in this state has no verdict of the controller yet.
func (s state) undecided() bool { return s == arriving || s == deciding }

// replaceable reports whether a rejection can still replace the response: no part of it has gone to the client.
func (s state) replaceable() bool {
	return set(fresh, arriving, deciding, granted, placed, placedNoHeaders, holding)>>s&1 == 1
}

// kind is the kind of a message from Envoy.
type kind uint8

const (
	requestHeadersKind kind = iota
	requestBodyKind
	requestTrailersKind
	responseHeadersKind
	responseBodyKind
	responseTrailersKind
	otherKind // window updates, and messages of later Envoys; they wait for no answer
	numKinds  = iota
)

func kindOf(m *extprocv3.ProcessingRequest) kind {
	switch m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		return requestHeadersKind
	case *extprocv3.ProcessingRequest_RequestBody:
		return requestBodyKind
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return requestTrailersKind
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return responseHeadersKind
	case *extprocv3.ProcessingRequest_ResponseBody:
		return responseBodyKind
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		return responseTrailersKind
	default:
		return otherKind
	}
}

// reaction answers one message. An error ends the stream.
type reaction func(*mainStream, *extprocv3.ProcessingRequest) error

// reactions has one for each kind of message in each state, in the order of the kinds. Envoy's messages wait in the
// connection while a stream is deciding or granted, and are not read once it is rejected.
var reactions = [numStates][numKinds]reaction{
	fresh:           {readRequest, strayRequestBody, strayRequestTrailers, ackResponseHeaders, ackResponseBody, ackResponseTrailers, ignore},
	arriving:        {strayRequestHeaders, collectBody, collectTrailers, abandon, abandon, abandon, ignore},
	deciding:        {breach, breach, breach, breach, breach, breach, breach},
	granted:         {breach, breach, breach, breach, breach, breach, breach},
	placed:          {strayRequestHeaders, ackRequestBody, ackRequestTrailers, readResponse, beginBody, beginTrailers, ignore},
	placedNoHeaders: {strayRequestHeaders, ackRequestBody, ackRequestTrailers, readResponse, beginBody, beginTrailers, ignore},
	holding:         {strayRequestHeaders, ackRequestBody, ackRequestTrailers, strayResponseHeaders, holdBody, releaseTrailers, ignore},
	responding:      {strayRequestHeaders, ackRequestBody, ackRequestTrailers, strayResponseHeaders, ackResponseBody, ackResponseTrailers, ignore},
	abandoned:       {strayRequestHeaders, ackRequestBody, ackRequestTrailers, strayResponseHeaders, ackResponseBody, ackResponseTrailers, ignore},
	rejected:        {breach, breach, breach, breach, breach, breach, breach},
	foreign:         {strayRequestHeaders, strayRequestBody, strayRequestTrailers, ackResponseHeaders, ackResponseBody, ackResponseTrailers, ignore},
	preplaced:       {forward, ackRequestBody, ackRequestTrailers, ackResponseHeaders, ackResponseBody, ackResponseTrailers, ignore},
	forwarded:       {strayRequestHeaders, ackRequestBody, ackRequestTrailers, ackResponseHeaders, ackResponseBody, ackResponseTrailers, ignore},
	observed:        {ignore, ignore, ignore, ignore, ignore, ignore, ignore},
}

// on answers one message.
func (st *mainStream) on(m *extprocv3.ProcessingRequest) error {
	return reactions[st.state][kindOf(m)](st, m)
}

// ignore answers nothing.
func ignore(*mainStream, *extprocv3.ProcessingRequest) error { return nil }

// breach is the reaction in states in which no message is read.
func breach(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	panic(fmt.Sprintf("extproc: a message was read in state %d", st.state))
}

// The reactions called ack acknowledge a message: with an empty answer, or with the body where the mode wants it back. The
// ones called stray do the same with a message that makes no sense in the state, and count it.

func strayRequestHeaders(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	st.unexpected("request headers", st.state.String())
	return st.send(emptyRequestHeaders)
}

func ackRequestBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if st.modes.request == request.FullDuplex {
		return st.echoRequest(m.GetRequestBody().GetBody(), ends(m.GetRequestBody()))
	}
	return st.send(emptyRequestBody)
}

func strayRequestBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if st.modes.request != request.FullDuplex {
		st.unexpected("request body", st.state.String())
	}
	return ackRequestBody(st, m)
}

func ackRequestTrailers(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	return st.send(emptyRequestTrailers)
}

func strayRequestTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.unexpected("request trailers", st.state.String())
	return ackRequestTrailers(st, m)
}

func ackResponseHeaders(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	return st.send(emptyResponseHeaders)
}

func strayResponseHeaders(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.unexpected("response headers", st.state.String())
	return ackResponseHeaders(st, m)
}

// ends reports whether a body message is the last one.
func ends(b *extprocv3.HttpBody) bool { return b.GetEndOfStream() || b.GetEndOfStreamWithoutMessage() }
