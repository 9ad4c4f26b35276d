package extproc

import (
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
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
	st.ended = st.ended || end
	if st.usage == nil {
		return
	}
	st.usage.Write(b)
	if st.events {
		st.outgrown(st.usage.Events())
	}
}

// ackResponseBody lets a part of the response body go on to the client.
func ackResponseBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	b := m.GetResponseBody()
	if st.modes.echoesResponse() {
		return st.echoResponse(b.GetBody(), ends(b))
	}
	st.watchBody(b.GetBody(), ends(b))
	return st.send(emptyResponseBody)
}

// echoResponse sends a part of the response body back.
func (st *mainStream) echoResponse(b []byte, end bool) error {
	st.watchBody(b, end)
	for len(b) > maxChunk {
		if err := st.send(responseChunk(b[:maxChunk], false)); err != nil {
			return err
		}
		b = b[maxChunk:]
	}
	return st.send(responseChunk(b, end))
}
