package extproc

import (
	"bytes"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/codec"
)

// watchBody reads a part of the response body as it passes: the usage that it reports, and whether the response has
// outgrown its charge. end is set with the last part. Nothing of it is kept.
func (st *mainStream) watchBody(b []byte, end bool) {
	if events := st.response.reading.Write(b, end); st.response.events {
		st.grant.outgrown(events)
	}
}

// ackResponseBody lets a part of the response body go on to the client.
func ackResponseBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	b := m.GetResponseBody()
	if st.modes.echoesResponse {
		return st.echoResponse(b.GetBody(), ends(b))
	}
	st.watchBody(b.GetBody(), ends(b))
	if kept := st.response.kept(b.GetBody(), ends(b)); st.response.strip != nil && !bytes.Equal(kept, b.GetBody()) {
		return st.wire.Send(replacedPart(kept))
	}
	return st.wire.Send(emptyResponseBody)
}

// echoResponse sends a part of the response body back.
func (st *mainStream) echoResponse(b []byte, end bool) error {
	st.watchBody(b, end)
	kept := st.response.kept(b, end)
	if len(kept) == 0 && len(b) > 0 && !end {
		return nil
	}
	return st.sendChunks(kept, end, codec.ResponseChunk)
}

// ackResponseTrailers lets the trailers of a response go on to the client. They end its body.
func ackResponseTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.response.reading.End()
	st.readEnvoyUsage(m)
	// An event that was cut off is sent. In STREAMED the last reply to a part has gone, and nothing can be added: what is
	// missing is no event, and clients drop it.
	if rest := st.response.rest(); len(rest) > 0 && st.modes.echoesResponse {
		if err := st.sendChunks(rest, false, codec.ResponseChunk); err != nil {
			return err
		}
	}
	return st.wire.Send(emptyResponseTrailers)
}
