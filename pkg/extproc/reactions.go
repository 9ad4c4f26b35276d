package extproc

import (
	"context"
	"errors"
	"fmt"
	"io"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// next returns the next message, or errFinished if the stream has ended with a rejection meanwhile.
func (st *mainStream) next() (m *extprocv3.ProcessingRequest, err error) {
	r := &st.reader
	switch {
	case r.inbox != nil: // the reader is running
	case st.state == arriving:
		if !st.body.turn.lend(func() { m, err = r.wire.Recv() }) {
			return nil, errFinished // the request was expelled
		}
		return m, err
	default:
		m, err = r.wire.Recv()
		r.eof = errors.Is(err, io.EOF)
		return m, err
	}
	for {
		if m := r.inbox.get(); m != nil {
			return m, nil
		}
		select {
		case <-r.inbox.ready:
		case <-st.grant.preempted:
			return nil, st.firstByte() // it rejects the request
		case <-r.gone:
			if m := r.inbox.get(); m != nil { // it was received before the end
				return m, nil
			}
			return nil, context.Canceled
		}
	}
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
	otherKind // window updates, and messages of later Envoys; they need no reply
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

// reaction replies to one message. An error ends the stream.
type reaction func(*mainStream, *extprocv3.ProcessingRequest) error

// reactions has one reaction for each kind of message in each state, in the order of the kinds. Envoy's messages wait
// in the connection while a stream is deciding or granted, and are not read after a rejection.
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

// on replies to one message.
func (st *mainStream) on(m *extprocv3.ProcessingRequest) error {
	return reactions[st.state][kindOf(m)](st, m)
}

// ignore sends no reply.
func ignore(*mainStream, *extprocv3.ProcessingRequest) error { return nil }

// breach is the reaction in states that read no messages.
func breach(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	panic(fmt.Sprintf("extproc: a message was read in state %d", st.state))
}

// abandon gives up a request with an incomplete body because Envoy itself responded to the client: with 413 for a body
// over the buffer's limit, with 408, or with any other status if the client is gone.
func abandon(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.body.turn.end()
	st.body.drop()
	err := st.goneError()
	if headOf(m.GetResponseHeaders()).status == 413 {
		err = &fieldError{sentinel: flowcontrol.ErrTooLarge, message: "The request body is larger than Envoy's buffer limit."}
	}
	st.noteRejection(st.refusal(err))
	st.state.enter(abandoned)
	switch kindOf(m) {
	case responseBodyKind:
		return ackResponseBody(st, m)
	case responseTrailersKind:
		return ackResponseTrailers(st, m)
	default:
		return ackResponseHeaders(st, m)
	}
}

// The reactions called ack acknowledge a message: with an empty reply, or with the body if the mode requires it back.
// The reactions called stray also count the message, which makes no sense in the state.

func strayRequestHeaders(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	st.unexpected("request headers", st.state.String())
	return st.wire.Send(emptyRequestHeaders)
}

func ackRequestBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if st.modes.request == request.FullDuplex {
		return st.sendChunks(m.GetRequestBody().GetBody(), ends(m.GetRequestBody()), codec.RequestChunk)
	}
	return st.wire.Send(emptyRequestBody)
}

func strayRequestBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if st.modes.request != request.FullDuplex {
		st.unexpected("request body", st.state.String())
	}
	return ackRequestBody(st, m)
}

func ackRequestTrailers(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	return st.wire.Send(emptyRequestTrailers)
}

func strayRequestTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.unexpected("request trailers", st.state.String())
	return ackRequestTrailers(st, m)
}

func ackResponseHeaders(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	return st.wire.Send(emptyResponseHeaders)
}

func strayResponseHeaders(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.unexpected("response headers", st.state.String())
	return ackResponseHeaders(st, m)
}
