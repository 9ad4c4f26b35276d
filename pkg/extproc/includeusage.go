package extproc

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/extproc/usage"
)

// A stream of chat completions or completions reports its usage only if stream_options.include_usage asks for it. With
// tokens.includeUsage Weir asks for it on behalf of clients that do not, and takes the event with it out of the response
// again, where Envoy shows it the body of the request (BUFFERED, BUFFERED_PARTIAL or FULL_DUPLEX_STREAMED) and that of the
// response (STREAMED or FULL_DUPLEX_STREAMED).

// mayAskForUsage reports whether Weir is to ask for the usage of the response if it streams and its client does not ask.
func (st *mainStream) mayAskForUsage() bool {
	if !st.cfg.IncludeUsage || st.passes || st.api != openAI || st.info != nil && !st.info.streams {
		return false
	}
	switch inferencePath(st.headers.values[slotPath]) {
	case "/v1/chat/completions", "/v1/completions":
	default:
		return false
	}
	if m := st.modes; !m.showsResponse() || m.request == modeNone || m.request == modeStreamed {
		st.server.once.warn(st.server.log, "includeUsage", "tokens.includeUsage cannot ask for the usage of streamed answers: "+
			"that needs a request_body_mode of BUFFERED or FULL_DUPLEX_STREAMED, and a response_body_mode of STREAMED or "+
			"FULL_DUPLEX_STREAMED", "request_body_mode", m.request.String(), "response_body_mode", m.response.String())
		return false
	}
	return st.readsUsage()
}

// edits returns what is to be changed in the collected body; nil if nothing is.
func (st *mainStream) edits() (edits []body.Edit) {
	f := &st.body.fields
	if st.target != "" && f.ModelEnd > 0 && f.Model != st.target {
		edits = append(edits, f.Rename(st.target))
	}
	if f.Stream && f.AskUsage.Text != "" && st.mayAskForUsage() {
		edits = append(edits, f.AskUsage)
	}
	return edits
}

// edit returns the collected body with its edits. If it asks for usage, the model server is told not to compress its
// response, from which the usage is to be taken out.
func (st *mainStream) edit(edits []body.Edit, own *ownPart) []byte {
	f := &st.body.fields
	for _, e := range edits {
		if e == f.AskUsage {
			st.asked = true
			own.set = append(own.set, setHeader("accept-encoding", "identity"))
		}
	}
	return body.Apply(st.body.bytes, edits...)
}

// beginStrip begins to take the usage out of a response whose client has not asked for it. The announced length of such a
// response, if there is one, does not hold.
func (st *mainStream) beginStrip(head responseHead) {
	if st.asked && head.events && !head.encoded {
		st.strip = &usage.Strip{}
	}
}

// replacedPart returns the reply that replaces a part of a response body in STREAMED.
func replacedPart(b []byte) *extprocv3.ProcessingResponse {
	m := &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: b}}
	if len(b) == 0 {
		m.Mutation = &extprocv3.BodyMutation_ClearBody{ClearBody: true}
	}
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
		ResponseBody: &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{BodyMutation: m}},
	}}
}
