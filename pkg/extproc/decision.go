package extproc

import (
	"math"
	"strings"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// The fields of the metadata namespace weir, besides IDs, for Envoy's access log: %DYNAMIC_METADATA(weir:flow)% and so
// on (responses.metadata). Their names never change, because log formats contain them. Fields without a value are left
// out. Envoy merges the fields of several replies for one request; the last value of each counts.
const (
	decisionFlow     = "flow"
	decisionTier     = "tier"
	decisionModel    = "model"
	decisionWait     = "wait_ms"  // time in the queue, in milliseconds; 0 for a bypass
	decisionEndpoint = "endpoint" // the endpoint picked; after a retry Envoy's %UPSTREAM_HOST% differs
	decisionOutcome  = "outcome"
	decisionBypass   = "bypass" // whether the request bypassed the queue
)

// decision adds the decision about the request to metadata.
func (st *mainStream) decision(m *codec.Metadata, outcome flowcontrol.Outcome) {
	wait, bypass := st.grant.waited()
	m.Number(decisionWait, math.Round(wait.Seconds()*1e6)/1e3)
	m.Bool(decisionBypass, bypass)
	m.String(decisionOutcome, outcome.String())
	for _, field := range [...]struct{ name, value string }{
		{decisionFlow, st.grant.flow(&st.request)},
		{decisionTier, st.tierName()},
		{decisionModel, st.request.Model},
		{decisionEndpoint, st.grant.picked},
	} {
		if field.value != "" { // a header need not be UTF-8, but a message must be
			m.String(field.name, strings.ToValidUTF8(field.value, "\uFFFD"))
		}
	}
}
