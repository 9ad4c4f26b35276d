package extproc

import (
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// slowBody is the announced length, in bytes, from which Weir asks Envoy for more time for a body. Envoy's own message
// timeout covers shorter bodies, which saves the message.
const slowBody = 64 << 10

// readRequest reads the request headers. It offers the request if they suffice, and otherwise awaits the body.
func readRequest(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.state.enter(deciding)
	needsBody, err := st.readHeaders(m)
	if err != nil {
		return st.refuse(err)
	}
	if !needsBody {
		return st.offer()
	}
	st.state.enter(arriving)
	st.body.await(st, &st.request, st.modes.request, st.begun)
	if st.modes.request == request.FullDuplex {
		return nil // headers and body get their replies together
	}
	if err := st.answerHeadersEarly(); err != nil {
		return err
	}
	if st.request.ContentLength < slowBody {
		return nil
	}
	// Envoy's message timeout runs while it writes the body, and many large bodies at once take long. Envoy takes one
	// request for more time per phase, so this one covers the whole phase: until the body's deadline, plus the longest
	// wait in the queue. Without a buffer filter before Weir there is no body message to extend yet, and Envoy takes
	// onQueued's request instead (TestOneOverrideForTheBodyPhase, TestOverrideBeforeTheBodyIsWhole).
	return st.extend(time.Until(st.body.arrival.deadline.at()) + st.cfg.LongestWait)
}

// readHeaders reads the request headers. An error refuses the request.
func (st *mainStream) readHeaders(m *extprocv3.ProcessingRequest) (needsBody bool, err error) {
	h, metadata := m.GetRequestHeaders(), m.GetMetadataContext()
	st.line = st.newLine(h)
	st.trace = st.newTrace(h)
	var headers request.Headers
	addHeaders(&headers, st.cfg.rules, h.GetHeaders().GetHeaders())
	needsBody, err = st.request.ReadHeaders(st.cfg.rules, &headers, &request.Input{
		End:       h.GetEndOfStream(),
		Mode:      st.modes.request,
		AskUsage:  st.cfg.IncludeUsage && st.modes.showsResponse,
		Context:   requestContext{m},
		Subset:    subsetOf(metadata),
		EnvoyRead: envoyReadOf(metadata),
		Now:       st.begun,
		Models:    st.server.picker,
		Draw:      &st.server.draw,
	})
	st.warnOfRequest()
	st.record = st.newRecord(&st.request, st.line.id)
	return needsBody, err
}
