package extproc

import (
	"math"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	logv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-epp/weir/pkg/extproc/usage"
)

// entryOf returns a record of Envoy's access log with an ID and what its filters have read.
func entryOf(id string, numbers map[string]any) *logv3.HTTPAccessLogEntry {
	read, err := structpb.NewStruct(numbers)
	if err != nil {
		panic(err)
	}
	return &logv3.HTTPAccessLogEntry{
		CommonProperties: &logv3.AccessLogCommon{
			AccessLogType: logv3.AccessLogType_DownstreamEnd,
			ResponseFlags: &logv3.ResponseFlags{},
			Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
				weirNamespace:  {Fields: map[string]*structpb.Value{requestKey: structpb.NewStringValue(id)}},
				usageNamespace: read,
			}},
		},
		Response: &logv3.HTTPResponseProperties{ResponseCode: wrapperspb.UInt32(200)},
	}
}

func used(in, out float64) map[string]any { return map[string]any{"input": in, "output": out} }

// The numbers of a record are taken as they are, but none that makes no sense, and none that is absurdly large.
func TestNumbersOfARecord(t *testing.T) {
	const most = 1 << 40
	for _, c := range []struct {
		name       string
		numbers    map[string]any
		want       usage.Tokens
		known, bad bool
	}{
		{"all", map[string]any{"input": 120.0, "output": 30.0, "cached": 20.0}, usage.Tokens{Input: 120, Output: 30, Cached: 20}, true, false},
		{
			"as Anthropic says it",
			map[string]any{"input": 4.0, "output": 30.0, "cache_read": 2000.0, "cache_created": 100.0},
			usage.Tokens{Input: 2104, Output: 30, Cached: 2000},
			true, false,
		},
		{"none in the cache", used(120, 30), usage.Tokens{Input: 120, Output: 30}, true, false},
		{"no answer", used(120, 0), usage.Tokens{Input: 120}, true, false},
		{"only the input", map[string]any{"input": 120.0}, usage.Tokens{Input: 120}, false, false},
		{"nothing", nil, usage.Tokens{}, false, false},
		{"absurd", used(1e300, math.Inf(1)), usage.Tokens{Input: most, Output: most}, true, false},
		{"below zero", used(120, -30), usage.Tokens{}, false, true},
		{"nonsense of the cache", map[string]any{"input": 120.0, "output": 30.0, "cached": -1.0}, usage.Tokens{}, false, true},
		{"no number", map[string]any{"input": "120", "output": 30.0}, usage.Tokens{}, false, true},
		{"null", map[string]any{"input": nil, "output": 30.0}, usage.Tokens{}, false, true},
	} {
		id, r := readRecord(entryOf("an id", c.numbers))
		if got, known := r.usage(false); id != "an id" || got != c.want || known != c.known || r.bad != c.bad || r.status != 200 {
			t.Errorf("%s: got %q %+v, %+v", c.name, id, got, r)
		}
	}
	nan := entryOf("an id", used(120, 0))
	nan.CommonProperties.Metadata.FilterMetadata[usageNamespace].Fields["output"] = structpb.NewNumberValue(math.NaN())
	if _, r := readRecord(nan); !r.bad {
		t.Errorf("not a number: got %+v", r)
	}
}

// How an exchange has ended. An answer is whole only if Envoy knows nothing to the contrary.
func TestEndOfARecord(t *testing.T) {
	later := &logv3.ResponseFlags{} // a flag that this version does not know
	later.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), 1))
	for _, c := range []struct {
		name  string
		flags *logv3.ResponseFlags
		want  end
	}{
		{"no flags", &logv3.ResponseFlags{}, endWhole},
		{"none given", nil, endWhole},
		{"DC", &logv3.ResponseFlags{DownstreamConnectionTermination: true}, endClient},
		{"DR", &logv3.ResponseFlags{DownstreamRemoteReset: true}, endClient},
		{"UR", &logv3.ResponseFlags{UpstreamRemoteReset: true}, endServer},
		{"UC", &logv3.ResponseFlags{UpstreamConnectionTermination: true}, endServer},
		{"UPE", &logv3.ResponseFlags{UpstreamProtocolError: true}, endServer},
		{"UF and URX", &logv3.ResponseFlags{UpstreamConnectionFailure: true, UpstreamRetryLimitExceeded: true}, endUnsent},
		{"UH", &logv3.ResponseFlags{NoHealthyUpstream: true}, endUnsent},
		{"UT", &logv3.ResponseFlags{UpstreamRequestTimeout: true}, endAnother},
		{"one of a later Envoy", later, endAnother},
	} {
		if got := endOf(c.flags); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, endLabels[got], endLabels[c.want])
		}
	}
}

// A record counts at the end of an exchange only, and if it names a request.
func TestRecordsThatNameNoRequest(t *testing.T) {
	early := entryOf("an id", used(120, 1))
	early.CommonProperties.AccessLogType = logv3.AccessLogType_DownstreamPeriodic
	odd := entryOf("", nil)
	odd.CommonProperties.Metadata.FilterMetadata[weirNamespace].Fields[requestKey] = structpb.NewNumberValue(7)
	for name, e := range map[string]*logv3.HTTPAccessLogEntry{
		"nil": nil, "empty": {}, "no ID": entryOf("", used(1, 1)), "an ID that is no text": odd, "before the end": early,
	} {
		if id, _ := readRecord(e); id != "" {
			t.Errorf("%s: got %q", name, id)
		}
	}
}
