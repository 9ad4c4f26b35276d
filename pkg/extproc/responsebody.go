package extproc

import (
	"bytes"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/codec"
)

// watchBody reads the usage in a part of the response body, and notices whether the response has outgrown its charge.
// end is set with the last part. The part is not kept.
func (st *mainStream) watchBody(b []byte, end bool) {
	if events := st.response.reading.Write(b, end); st.response.events {
		st.grant.outgrown(events)
	}
}

// ackResponseBody releases a part of the response body to the client.
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

// ackResponseTrailers releases the trailers of a response to the client. They end its body.
func ackResponseTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.response.reading.End()
	st.readEnvoyUsage(m)
	// The rest of a truncated event is sent. In STREAMED the last reply to a part has gone, so nothing can be added;
	// clients drop an incomplete event.
	if rest := st.response.rest(); len(rest) > 0 && st.modes.echoesResponse {
		if err := st.sendChunks(rest, false, codec.ResponseChunk); err != nil {
			return err
		}
	}
	return st.wire.Send(emptyResponseTrailers)
}
