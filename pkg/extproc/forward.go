package extproc

import (
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/request"
)

// forwardReply is the reply to the headers of a request placed by an earlier filter. Envoy then sends nothing more.
var forwardReply = codec.Merged(emptyRequestHeaders, &extprocv3.ProcessingResponse{
	ModeOverride: &modev3.ProcessingMode{
		RequestBodyMode:     modev3.ProcessingMode_NONE,
		RequestTrailerMode:  modev3.ProcessingMode_SKIP,
		ResponseHeaderMode:  modev3.ProcessingMode_SKIP,
		ResponseBodyMode:    modev3.ProcessingMode_NONE,
		ResponseTrailerMode: modev3.ProcessingMode_SKIP,
	},
})

// forward passes on a request placed by an earlier filter, without further messages if Envoy permits that.
func forward(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	st.state.enter(forwarded)
	if st.modes.request == request.FullDuplex || st.modes.echoesResponse {
		return st.wire.Send(emptyRequestHeaders) // these modes cannot be overridden
	}
	return st.wire.Send(forwardReply)
}
