package extproc

import (
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/request"
)

// addHeaders adds the headers of Envoy's list to h.
func addHeaders(h *request.Headers, r *request.Rules, list []*corev3.HeaderValue) {
	for _, hv := range list {
		if len(hv.RawValue) > 0 {
			h.Add(r, hv.Key, hv.RawValue)
		} else {
			h.AddString(r, hv.Key, hv.Value)
		}
	}
}

// ends reports whether a body message is the last one.
func ends(b *extprocv3.HttpBody) bool { return b.GetEndOfStream() || b.GetEndOfStreamWithoutMessage() }

// headerValue returns the value of a header, from either field of Envoy's message.
func headerValue(hv *corev3.HeaderValue) string {
	if len(hv.GetRawValue()) > 0 {
		return string(hv.GetRawValue())
	}
	return hv.GetValue()
}

// requestContext implements request.Context with the dynamic metadata and the attributes of a message.
type requestContext struct{ *extprocv3.ProcessingRequest }

// Metadata implements request.Context.
func (c requestContext) Metadata(namespace string, path []string) string {
	s := c.GetMetadataContext().GetFilterMetadata()[namespace]
	for _, name := range path[:len(path)-1] {
		s = s.GetFields()[name].GetStructValue()
	}
	return scalar(s.GetFields()[path[len(path)-1]])
}

// Attribute implements request.Context.
func (c requestContext) Attribute(name string) string {
	for _, group := range c.GetAttributes() { // one group for each filter
		if v := scalar(group.GetFields()[name]); v != "" {
			return v
		}
	}
	return ""
}

// scalar returns a string, number or bool as text, and "" for any other value.
func scalar(v *structpb.Value) string {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return k.StringValue
	case *structpb.Value_NumberValue:
		return strconv.FormatFloat(k.NumberValue, 'f', -1, 64)
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(k.BoolValue)
	}
	return ""
}

// subsetOf reads the subset hint from a request's metadata. A value that is neither a string nor a list has no members:
// it must not open the whole pool.
func subsetOf(m *corev3.Metadata) (s request.Subset) {
	value, ok := m.GetFilterMetadata()[request.SubsetNamespace].GetFields()[request.SubsetKey]
	if !ok {
		return s
	}
	s.Set = true
	switch k := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		s.Add(k.StringValue)
	case *structpb.Value_ListValue:
		for _, v := range k.ListValue.GetValues() {
			s.Add(v.GetStringValue())
		}
	}
	return s
}

// envoyRequest is the namespace of typed metadata in which Envoy's filter ai_protocol_manager writes the parts of a
// request that it has read. Only Envoy can write there.
const envoyRequest = "envoy.ai.request_info"

// envoyReadOf returns the parts of a request read by Envoy, from the metadata of request headers; nil if there are
// none.
func envoyReadOf(m *corev3.Metadata) *request.EnvoyRead {
	packed := m.GetTypedFilterMetadata()[envoyRequest]
	if packed == nil {
		return nil
	}
	var read aiv3.RequestInfo
	if err := packed.UnmarshalTo(&read); err != nil {
		return nil // of another type: nothing is known
	}
	info := &request.EnvoyRead{
		Model: read.GetModel(), Streams: read.GetStream().GetValue(), Input: estimate.Unknown, Most: estimate.Unknown,
	}
	if n := read.GetEstimatedInputTokens(); n != nil {
		info.Input = tokens(n.GetValue())
	}
	if n := read.GetMaxOutputTokens().GetValue(); n > 0 { // engines differ in the meaning of 0
		info.Most = tokens(n)
	}
	return info
}

// responseHead has the parts of response headers used by the main stream and the gate.
type responseHead struct {
	status   int           // 0 if there is none
	events   bool          // the body is server-sent events
	encoded  bool          // the body cannot be read
	trailers bool          // trailers are announced, or usual
	ours     bool          // the response is a rejection of Weir's
	again    time.Duration // the server's Retry-After, if in seconds
}

// headOf reads response headers. The response waits meanwhile, so it reads only what is needed.
func headOf(h *extprocv3.HttpHeaders) (r responseHead) {
	for _, hv := range h.GetHeaders().GetHeaders() {
		switch hv.GetKey() {
		case ":status":
			r.status, _ = strconv.Atoi(headerValue(hv))
		case "content-type":
			kind := strings.ToLower(headerValue(hv))
			r.events = strings.HasPrefix(kind, "text/event-stream")
			r.trailers = r.trailers || strings.HasPrefix(kind, "application/grpc")
		case "content-encoding":
			r.encoded = headerValue(hv) != "identity"
		case "trailer":
			r.trailers = true
		case "retry-after":
			seconds, _ := strconv.ParseUint(headerValue(hv), 10, 16)
			r.again = time.Duration(seconds) * time.Second
		case reasonHeader:
			r.ours = true
		}
	}
	return r
}

// maxTokens caps numbers of tokens from outside.
const maxTokens = 1 << 40

// tokens returns a number of tokens, at most maxTokens.
func tokens(n uint64) int64 { return int64(min(n, maxTokens)) }
