package extproc

import (
	"math"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// The fields of the metadata namespace weir, besides IDs, that Envoy's access log may show as
// %DYNAMIC_METADATA(weir:flow)% and so on (responses.metadata). Their names never change, because log formats contain them.
// A field whose value is not known is left out. Envoy merges the fields of several answers to one request; the last value
// of each counts.
const (
	decisionFlow     = "flow"
	decisionTier     = "tier"
	decisionModel    = "model"
	decisionWait     = "wait_ms"  // time in the queue, in milliseconds; 0 for a bypass
	decisionEndpoint = "endpoint" // the endpoint picked; after a retry Envoy's %UPSTREAM_HOST% is another one
	decisionOutcome  = "outcome"
	decisionBypass   = "bypass" // whether the request bypassed the queue
)

// decision returns the decision about the request, as metadata.
func (st *mainStream) decision(outcome flowcontrol.Outcome) metadataFields {
	wait, bypass := st.grant.waited()
	fields := metadataFields{
		decisionWait:    structpb.NewNumberValue(math.Round(wait.Seconds()*1e6) / 1e3),
		decisionBypass:  structpb.NewBoolValue(bypass),
		decisionOutcome: structpb.NewStringValue(outcome.String()),
	}
	for name, value := range map[string]string{
		decisionFlow: st.flowKey(), decisionTier: st.tierName(), decisionModel: st.request.Model, decisionEndpoint: st.grant.picked,
	} {
		if value != "" { // the bytes of a header need not be UTF-8, those of a message have to be
			fields[name] = structpb.NewStringValue(strings.ToValidUTF8(value, "\uFFFD"))
		}
	}
	return fields
}
