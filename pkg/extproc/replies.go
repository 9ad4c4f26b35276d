package extproc

import (
	"strconv"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/request"
)

// destinationNamespace is the namespace of dynamic metadata in which the data plane looks for the destination.
const destinationNamespace = "envoy.lb"

// The field of dynamic metadata with a request's ID, which no client can write. The reply to the main filter sets it
// (receiving_namespaces.untyped: [weir]), and the gate's first message returns it (forwarding_namespaces).
const (
	weirNamespace = "weir"
	linkKey       = "id"
)

// The constant replies. They are encoded once, and all streams share them.
var (
	emptyRequestHeaders = codec.Encoded(&extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extprocv3.HeadersResponse{},
	}})
	emptyRequestBody = codec.Encoded(&extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
		RequestBody: &extprocv3.BodyResponse{},
	}})
	emptyRequestTrailers = codec.Encoded(&extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestTrailers{
		RequestTrailers: &extprocv3.TrailersResponse{},
	}})
	emptyResponseHeaders = codec.Encoded(&extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extprocv3.HeadersResponse{},
	}})
	emptyResponseBody = codec.Encoded(&extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
		ResponseBody: &extprocv3.BodyResponse{},
	}})
	emptyResponseTrailers = codec.Encoded(&extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseTrailers{
		ResponseTrailers: &extprocv3.TrailersResponse{},
	}})
)

// phase is the kind of message to which a reply with a destination belongs.
type phase uint8

const (
	headersPhase phase = iota
	bodyPhase
	responsePhase // of response headers, whose replies have no destination
)

// replyKey has all values that determine the shared part of a reply.
type replyKey struct {
	// destination is the ordered list of endpoints, or "" for none.
	destination string
	// remove are the control headers to remove.
	remove request.Slots
	phase  phase
	// override replaces the filter's mode: requestBody is NONE or the present mode, and responseBody the mode to keep
	// for the response body. noHeaders makes Envoy skip the response headers.
	override     bool
	noHeaders    bool
	requestBody  modev3.ProcessingMode_BodySendMode
	responseBody modev3.ProcessingMode_BodySendMode
}

// ownPart is the part of a reply for one request only. It is not cached, so it may hold values that differ by request:
// an ID, a trace context, a rewritten body.
type ownPart struct {
	set      []*corev3.HeaderValueOption
	remove   []string
	body     []byte         // replaces the request body, unless nil
	metadata codec.Metadata // in the namespace weir
}

// setContentLength sets the header content-length. If the request has one, Envoy requires the length of the new body in
// the same reply.
func (o *ownPart) setContentLength(n int) {
	o.set = append(o.set, setHeader("content-length", strconv.Itoa(n)))
}

// reply returns the reply for k with a request's own part. Without an own part it returns the shared reply.
func (c *replies) reply(k replyKey, own ownPart) *extprocv3.ProcessingResponse {
	return own.addTo(c.shared(k), k.phase)
}

// addTo returns an encoded reply with the own part added, or the shared reply if there is nothing to add.
func (o *ownPart) addTo(shared *extprocv3.ProcessingResponse, at phase) *extprocv3.ProcessingResponse {
	if !o.metadata.Empty() {
		shared = codec.WithMetadata(shared, weirNamespace, &o.metadata)
	}
	if common := o.common(); common != nil {
		return codec.Merged(shared, at.reply(common))
	}
	return shared
}

// common returns the headers and the body, or nil if there are none.
func (o *ownPart) common() *extprocv3.CommonResponse {
	headers := len(o.set) > 0 || len(o.remove) > 0
	if !headers && o.body == nil {
		return nil
	}
	r := &extprocv3.CommonResponse{}
	if headers {
		r.HeaderMutation = &extprocv3.HeaderMutation{SetHeaders: o.set, RemoveHeaders: o.remove}
	}
	if o.body != nil {
		r.BodyMutation = &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: o.body}}
	}
	return r
}

// reply returns a reply in this phase.
func (p phase) reply(common *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
	switch p {
	case bodyPhase:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
			RequestBody: &extprocv3.BodyResponse{Response: common},
		}}
	case responsePhase:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
			ResponseHeaders: &extprocv3.HeadersResponse{Response: common},
		}}
	default:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
			RequestHeaders: &extprocv3.HeadersResponse{Response: common},
		}}
	}
}

// replies makes the replies with a destination, and caches their shared parts: most requests of a pool get one of a
// few.
type replies struct {
	rules *request.Rules // name the headers to remove

	mu   sync.RWMutex
	kept map[replyKey]*extprocv3.ProcessingResponse
}

// maxReplies bounds the cache, which is emptied when it is full. A reply takes about 400 bytes.
const maxReplies = 4096

// shared returns the reply for k that all requests share.
func (c *replies) shared(k replyKey) *extprocv3.ProcessingResponse {
	c.mu.RLock()
	r := c.kept[k]
	c.mu.RUnlock()
	if r != nil {
		return r
	}
	r = codec.Encoded(c.newReply(k))
	c.mu.Lock()
	if c.kept == nil || len(c.kept) >= maxReplies {
		c.kept = make(map[replyKey]*extprocv3.ProcessingResponse)
	}
	c.kept[k] = r
	c.mu.Unlock()
	return r
}

// newReply makes a shared part. Unlike other endpoint pickers' it does not clear Envoy's route cache (ADR 0011).
func (c *replies) newReply(k replyKey) *extprocv3.ProcessingResponse {
	r := k.phase.reply(&extprocv3.CommonResponse{HeaderMutation: c.mutation(k)})
	if k.destination != "" {
		r.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{
			destinationNamespace: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
				request.DestinationHeader: structpb.NewStringValue(k.destination),
			}}),
		}}
	}
	if k.override {
		// An override replaces the whole mode. Response trailers keep the stream open until the response has ended, so
		// they are requested even if the base mode skips them.
		r.ModeOverride = &modev3.ProcessingMode{
			RequestBodyMode:     k.requestBody,
			RequestTrailerMode:  modev3.ProcessingMode_SKIP,
			ResponseHeaderMode:  modev3.ProcessingMode_SEND,
			ResponseBodyMode:    k.responseBody,
			ResponseTrailerMode: modev3.ProcessingMode_SEND,
		}
		if k.requestBody != modev3.ProcessingMode_NONE { // trailers may end it
			r.ModeOverride.RequestTrailerMode = modev3.ProcessingMode_SEND
		}
		if k.noHeaders {
			r.ModeOverride.ResponseHeaderMode = modev3.ProcessingMode_SKIP
		}
	}
	return r
}

// mutation returns the mutation that names the destination and removes the control headers, or nil if there is nothing
// to change.
func (c *replies) mutation(k replyKey) *extprocv3.HeaderMutation {
	if k.destination == "" && k.remove == 0 {
		return nil
	}
	m := &extprocv3.HeaderMutation{}
	if k.destination != "" {
		m.SetHeaders = []*corev3.HeaderValueOption{setHeader(request.DestinationHeader, k.destination)}
	}
	m.RemoveHeaders = c.rules.AppendNames(nil, k.remove)
	return m
}

func setHeader(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, RawValue: []byte(value)},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
