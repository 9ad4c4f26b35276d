package extproc

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"

	"github.com/weir-epp/weir/pkg/estimate"
)

// envoyRequest is the namespace of typed metadata in which Envoy's filter ai_protocol_manager tells what it has read of a
// request. Only Envoy can write there, so it counts like a trusted header: after the headers that the configuration names,
// and before the body, which is not asked for as far as this says enough.
const envoyRequest = "envoy.ai.request_info"

// requestInfo is what Envoy has read of a request. How many answers it asks for is not told (n, best_of, several prompts).
type requestInfo struct {
	// model is the model's name, or "".
	model string
	// streams is set if the client wants a stream.
	streams bool
	// input is the estimated length of the prompt, and most that of the longest answer that the request allows, in tokens;
	// estimate.Unknown if they are not told.
	input, most int64
}

// requestInfoOf returns what the metadata of request headers tells; nil if it tells nothing.
func requestInfoOf(m *corev3.Metadata) *requestInfo {
	packed := m.GetTypedFilterMetadata()[envoyRequest]
	if packed == nil {
		return nil
	}
	var read aiv3.RequestInfo
	if err := packed.UnmarshalTo(&read); err != nil {
		return nil // of another type: nothing is known
	}
	info := &requestInfo{
		model: read.GetModel(), streams: read.GetStream().GetValue(), input: estimate.Unknown, most: estimate.Unknown,
	}
	if n := read.GetEstimatedInputTokens(); n != nil {
		info.input = tokens(n.GetValue())
	}
	if n := read.GetMaxOutputTokens().GetValue(); n > 0 { // engines differ in what 0 means
		info.most = tokens(n)
	}
	return info
}
