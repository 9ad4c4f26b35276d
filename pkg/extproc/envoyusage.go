package extproc

import (
	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/usage"
)

// envoyUsage is the namespace of typed metadata in which Envoy's filter ai_protocol_manager writes the usage that it
// has read from an answer. Only Envoy can write there.
const envoyUsage = "envoy.ai.token_usage"

// readEnvoyUsage reads the usage in the metadata of response trailers.
func (st *mainStream) readEnvoyUsage(m *extprocv3.ProcessingRequest) {
	if w := st.cfg.Usage; w != UsageAuto && w != UsageTrailers {
		return
	}
	packed := m.GetMetadataContext().GetTypedFilterMetadata()[envoyUsage]
	if packed == nil {
		return
	}
	read, err := codec.ReadUsage(packed)
	if err != nil {
		return // of another type: unknown
	}
	in, out := read.GetInputTokens(), read.GetOutputTokens()
	if in == nil && out == nil || read.GetExtractionStatus() == aiv3.TokenUsage_FAILED {
		return
	}
	t := usage.Tokens{
		Input: tokens(in.GetValue()), Output: tokens(out.GetValue()),
		Cached: tokens(read.GetInputTokenDetails().GetCachedTokens().GetValue()),
	}
	whole := in != nil && (out != nil || st.request.PromptOnly)
	if !whole || read.GetExtractionStatus() == aiv3.TokenUsage_PARTIAL { // or an earlier state
		if st.grant.charge != nil {
			st.grant.charge.AtLeast(t)
		}
		return
	}
	st.response.reading.Tell(t)
}
