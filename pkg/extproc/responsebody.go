package extproc

import (
	"bytes"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/codec"
)

// showsResponse reports whether response bodies come here part by part: in FULL_DUPLEX_STREAMED, where they have to be sent
// back, and in STREAMED, where Envoy keeps each part until it is acknowledged.
func (m modes) showsResponse() bool {
	return m.echoesResponse() || m.response == modev3.ProcessingMode_STREAMED
}

// readsUsage reports whether the usage is read from this response's body, if it can be read.
func (st *mainStream) readsUsage() bool { return st.cfg.readsBody() && st.modes.showsResponse() }

// watchBody reads a part of the response body as it passes: the usage that it reports, and whether the response has
// outgrown its charge. end is set with the last part. Nothing of it is kept.
func (st *mainStream) watchBody(b []byte, end bool) {
	if events := st.reading.Write(b, end); st.events {
		st.outgrown(events)
	}
}

// ackResponseBody lets a part of the response body go on to the client.
func ackResponseBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	b := m.GetResponseBody()
	if st.modes.echoesResponse() {
		return st.echoResponse(b.GetBody(), ends(b))
	}
	st.watchBody(b.GetBody(), ends(b))
	if kept := st.kept(b.GetBody(), ends(b)); st.strip != nil && !bytes.Equal(kept, b.GetBody()) {
		return st.send(replacedPart(kept))
	}
	return st.send(emptyResponseBody)
}

// echoResponse sends a part of the response body back.
func (st *mainStream) echoResponse(b []byte, end bool) error {
	st.watchBody(b, end)
	kept := st.kept(b, end)
	if len(kept) == 0 && len(b) > 0 && !end {
		return nil
	}
	return st.sendBack(kept, end)
}

// sendBack sends bytes of the response body back as they are.
func (st *mainStream) sendBack(b []byte, end bool) error {
	for len(b) > maxChunk {
		if err := st.send(codec.ResponseChunk(b[:maxChunk], false)); err != nil {
			return err
		}
		b = b[maxChunk:]
	}
	return st.send(codec.ResponseChunk(b, end))
}

// ackResponseTrailers lets the trailers of a response go on to the client. They end its body.
func ackResponseTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.reading.End()
	st.readEnvoyUsage(m)
	if err := st.releaseRest(); err != nil {
		return err
	}
	return st.send(emptyResponseTrailers)
}

// releaseRest sends what is held of an event that was cut off by trailers. In STREAMED the last reply to a part has gone,
// and nothing can be added: what is missing is no event, and clients drop it.
func (st *mainStream) releaseRest() error {
	if rest := st.rest(); len(rest) > 0 && st.modes.echoesResponse() {
		return st.sendBack(rest, false)
	}
	return nil
}
