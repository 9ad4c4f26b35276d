package extproc

import (
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// requestMode is how Envoy treats the request body, as the first message says.
type requestMode uint8

const (
	modeNone       requestMode = iota // never sent
	modeStreamed                      // sent in chunks after the headers were answered
	modeBuffered                      // sent in one message
	modePartial                       // sent in one message up to the buffer's limit
	modeFullDuplex                    // sent in chunks, and to be sent back
	numModes       = iota
)

// String is the mode as Envoy's configuration spells it.
func (m requestMode) String() string {
	return [numModes]string{"NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED"}[m]
}

// modes are the two body modes of a stream.
type modes struct {
	request  requestMode
	response modev3.ProcessingMode_BodySendMode
}

// modesOf reads the first message. One that says nothing is from an Envoy too old for it: then nothing is known, and
// what works in every mode but FULL_DUPLEX_STREAMED is to need no body.
func modesOf(first *extprocv3.ProcessingRequest) (m modes, known bool) {
	p := first.GetProtocolConfig()
	m.response = p.GetResponseBodyMode()
	switch p.GetRequestBodyMode() {
	case modev3.ProcessingMode_STREAMED:
		m.request = modeStreamed
	case modev3.ProcessingMode_BUFFERED:
		m.request = modeBuffered
	case modev3.ProcessingMode_BUFFERED_PARTIAL:
		m.request = modePartial
	case modev3.ProcessingMode_FULL_DUPLEX_STREAMED, modev3.ProcessingMode_GRPC:
		m.request = modeFullDuplex
	default:
		m.request = modeNone
	}
	return m, p != nil
}

// echoesResponse says that response bodies have to be sent back.
func (m modes) echoesResponse() bool {
	return m.response == modev3.ProcessingMode_FULL_DUPLEX_STREAMED || m.response == modev3.ProcessingMode_GRPC
}

// canSkipBody says that the body can be overridden to NONE in the answer to the headers.
func (m modes) canSkipBody() bool {
	return m.request == modeBuffered || m.request == modePartial || m.request == modeStreamed
}
