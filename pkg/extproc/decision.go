package extproc

import (
	"math"
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// What Envoy's access log may say of a request, as %DYNAMIC_METADATA(weir:flow)% and so on (Responses.Metadata). The
// names never change: log formats are written with them. What is not known is left out. Envoy merges the fields of
// several answers to one request, and the last one counts.
const (
	saidFlow     = "flow"
	saidTier     = "tier"
	saidModel    = "model"
	saidWait     = "wait_ms"  // time in the queue, milliseconds; 0 for a bypass
	saidEndpoint = "endpoint" // the one that was picked; after a retry Envoy's own %UPSTREAM_HOST% is another
	saidOutcome  = "outcome"
	saidBypass   = "bypass" // it did not wait
)

// waited is how long the request stood in the queue until now, or until its grant, and whether it went past it.
func (st *stream) waited() (wait time.Duration, bypass bool) {
	switch {
	case st.lease != nil:
		wait, queued := st.lease.Queued()
		return wait, !queued
	case !st.queued.IsZero():
		return time.Since(st.queued), false
	default:
		return 0, false
	}
}

// flowSaid is the key of the request's flow, "" while it cannot be told.
func (st *stream) flowSaid() string {
	if st.flow == "" && (st.identity.flow != "" || st.identity.byModel && st.model != "") {
		st.flow = st.identity.flowKey(st.model, st.target)
	}
	return st.flow
}

// tierSaid is the name of the request's tier, "" while it cannot be told.
func (st *stream) tierSaid() string {
	if !st.tierKnown {
		return ""
	}
	return st.cfg.Tiers[st.rank].Name
}

// said is the decision on the request in the namespace weir.
func (st *stream) said(outcome flowcontrol.Outcome) map[string]*structpb.Value {
	wait, bypass := st.waited()
	fields := map[string]*structpb.Value{
		saidWait:    structpb.NewNumberValue(math.Round(wait.Seconds()*1e6) / 1e3),
		saidBypass:  structpb.NewBoolValue(bypass),
		saidOutcome: structpb.NewStringValue(outcome.String()),
	}
	for name, value := range map[string]string{
		saidFlow: st.flowSaid(), saidTier: st.tierSaid(), saidModel: st.model, saidEndpoint: st.picked,
	} {
		if value != "" { // a header's bytes may be no UTF-8, which a message must be
			fields[name] = structpb.NewStringValue(strings.ToValidUTF8(value, "\uFFFD"))
		}
	}
	return fields
}

// tied is the answer with what Envoy is to keep of the request: its name for the gate, and the decision for the access
// log. What is shared stays shared; where neither is wanted it is the answer itself.
func (st *stream) tied(r *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
	if st.tie == nil && !st.cfg.Responses.Metadata {
		return r
	}
	var weir map[string]*structpb.Value
	if st.cfg.Responses.Metadata {
		weir = st.said(flowcontrol.OutcomeDispatched)
	} else {
		weir = make(map[string]*structpb.Value, 1)
	}
	if st.tie != nil {
		weir[tieKey] = structpb.NewStringValue(st.tie.id)
	}
	fields := map[string]*structpb.Value{tieNamespace: structpb.NewStructValue(&structpb.Struct{Fields: weir})}
	if lb := r.GetDynamicMetadata().GetFields()[destinationNamespace]; lb != nil {
		fields[destinationNamespace] = lb
	}
	return &extprocv3.ProcessingResponse{
		Response: r.GetResponse(), ModeOverride: r.GetModeOverride(), DynamicMetadata: &structpb.Struct{Fields: fields},
	}
}

// explained is the answer to a rejected request with the decision, where that is wanted. The answer is not shared.
func (st *stream) explained(r *extprocv3.ProcessingResponse, rej *flowcontrol.Rejection) *extprocv3.ProcessingResponse {
	if st.cfg.Responses.Metadata {
		r.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{
			tieNamespace: structpb.NewStructValue(&structpb.Struct{Fields: st.said(rej.Outcome)}),
		}}
	}
	return r
}
