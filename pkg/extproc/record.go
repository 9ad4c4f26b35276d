package extproc

import (
	logv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/extproc/usage"
)

// Where a record of Envoy's access log has what concerns Weir, in its dynamic metadata. Weir itself writes the ID of the
// request. Envoy's filters json_to_metadata and sse_to_metadata write the tokens (config/envoy/als.yaml).
const (
	requestKey     = "request" // in the namespace weir
	usageNamespace = "weir.usage"

	// Each as its API means it (usage.Counts).
	inputKey        = "input"
	outputKey       = "output"
	cachedKey       = "cached"
	cacheReadKey    = "cache_read"
	cacheCreatedKey = "cache_created"
)

// countsOf are the numbers of a record by their keys.
var countsOf = [...]struct {
	key   string
	count usage.Count
}{
	{inputKey, usage.Input},
	{outputKey, usage.Output},
	{cachedKey, usage.Cached},
	{cacheReadKey, usage.CacheRead},
	{cacheCreatedKey, usage.CacheCreated},
}

// record is what Envoy's access log says of one request.
type record struct {
	counts usage.Counts
	bad    bool // a number makes no sense
	status int  // 0 if Envoy sent none
	end    end
}

// end is how an exchange ended, as Envoy saw it.
type end uint8

const (
	endWhole   end = iota // the answer went to its end
	endClient             // the client left
	endServer             // the model server, or the connection to it, broke off
	endUnsent             // no model server was reached
	endAnother            // a timeout, a limit of Envoy, or what a later Envoy may know
	numEnds    = iota
)

// endLabels are the values of the label "end" in metrics.
var endLabels = [numEnds]string{
	endWhole: "whole", endClient: "client", endServer: "server", endUnsent: "unsent", endAnother: "other",
}

// readRecord reads a record and the ID of its request. The ID is "" if the record names no request, or is not the last one
// of an exchange.
func readRecord(entry *logv3.HTTPAccessLogEntry) (id string, r record) {
	common := entry.GetCommonProperties()
	switch common.GetAccessLogType() {
	case logv3.AccessLogType_NotSet, logv3.AccessLogType_DownstreamEnd:
	default:
		return "", r
	}
	metadata := common.GetMetadata().GetFilterMetadata()
	id = metadata[weirNamespace].GetFields()[requestKey].GetStringValue()
	if id == "" {
		return "", r
	}
	r.status = int(entry.GetResponse().GetResponseCode().GetValue())
	r.end = endOf(common.GetResponseFlags())
	fields := metadata[usageNamespace].GetFields()
	for _, c := range countsOf {
		if n, ok := r.number(fields[c.key]); ok {
			r.counts.Set(c.count, n)
		}
	}
	return id, r
}

// usage returns the usage that a record tells of a request, and reports whether it is known. Of a record with a number that
// makes no sense no other counts.
func (r *record) usage(promptOnly bool) (t usage.Tokens, known bool) {
	if r.bad {
		return t, false
	}
	return r.counts.Tokens(promptOnly)
}

// number returns a number of tokens, and reports whether there is one.
func (r *record) number(v *structpb.Value) (n int64, ok bool) {
	if v == nil {
		return 0, false
	}
	f, ok := v.GetKind().(*structpb.Value_NumberValue)
	if !ok || !(f.NumberValue >= 0) { // NaN is not
		r.bad = true
		return 0, false
	}
	return int64(min(f.NumberValue, maxTokens)), true
}

// endOf reads the reason of an end. An answer is whole only if Envoy knows nothing to the contrary.
func endOf(f *logv3.ResponseFlags) end {
	m := f.ProtoReflect()
	flagged := len(m.GetUnknown()) > 0
	m.Range(func(protoreflect.FieldDescriptor, protoreflect.Value) bool { flagged = true; return false })
	switch {
	case !flagged:
		return endWhole
	case f.GetDownstreamConnectionTermination() || f.GetDownstreamRemoteReset():
		return endClient
	case f.GetUpstreamRemoteReset() || f.GetUpstreamConnectionTermination() || f.GetUpstreamProtocolError():
		return endServer
	case f.GetUpstreamConnectionFailure() || f.GetNoHealthyUpstream() || f.GetNoRouteFound() || f.GetNoClusterFound():
		return endUnsent
	default:
		return endAnother
	}
}
