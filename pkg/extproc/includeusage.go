package extproc

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/body"
)

// A stream of chat completions or completions reports its usage only with stream_options.include_usage. With
// tokens.includeUsage Weir sets this field for clients that do not, and removes the usage event from the response.
// Envoy must show Weir the body of the request (BUFFERED, BUFFERED_PARTIAL or FULL_DUPLEX_STREAMED) and of the response
// (STREAMED or FULL_DUPLEX_STREAMED).

// edit returns the collected body with its edits. If it requests usage for the client, it also tells the model server
// not to compress the response, so that the usage can be removed.
func (st *mainStream) edit(own *ownPart) []byte {
	if st.request.AsksUsage {
		st.response.asked = true
		own.set = append(own.set, setHeader("accept-encoding", "identity"))
	}
	return body.Apply(st.body.bytes, st.request.Edits...)
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
