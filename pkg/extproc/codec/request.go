package codec

import (
	"slices"
	"unicode/utf8"
	"unsafe"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// The tags of a ProcessingRequest.
const (
	requestHeadersTag   = 2<<fieldShift | wireBytes
	responseHeadersTag  = 3<<fieldShift | wireBytes
	requestBodyTag      = 4<<fieldShift | wireBytes
	responseBodyTag     = 5<<fieldShift | wireBytes
	requestTrailersTag  = 6<<fieldShift | wireBytes
	responseTrailersTag = 7<<fieldShift | wireBytes
	metadataTag         = 8<<fieldShift | wireBytes
	attributesTag       = 9<<fieldShift | wireBytes
	observabilityTag    = 10<<fieldShift | wireVarint
	protocolTag         = 11<<fieldShift | wireBytes
)

// The tags of its parts.
const (
	headersTag      = 1<<fieldShift | wireBytes // of HttpHeaders, HttpTrailers and HeaderMap
	endOfHeadersTag = 3<<fieldShift | wireVarint

	keyTag      = 1<<fieldShift | wireBytes // of HeaderValue and of the entries of maps; the type of an Any
	valueTag    = 2<<fieldShift | wireBytes // of the same; the packed message of an Any
	rawValueTag = 3<<fieldShift | wireBytes

	bodyTag              = 1<<fieldShift | wireBytes
	endOfBodyTag         = 2<<fieldShift | wireVarint
	endWithoutMessageTag = 3<<fieldShift | wireVarint
	requestBodyModeTag   = 1<<fieldShift | wireVarint
	responseBodyModeTag  = 2<<fieldShift | wireVarint
	withoutWaitingTag    = 3<<fieldShift | wireVarint
	filterMetadataTag    = 1<<fieldShift | wireBytes
	typedMetadataTag     = 2<<fieldShift | wireBytes
)

// Parts of a message that occur together are allocated together.
type (
	headersPart struct {
		request  extprocv3.ProcessingRequest_RequestHeaders
		response extprocv3.ProcessingRequest_ResponseHeaders
		headers  extprocv3.HttpHeaders
		list     corev3.HeaderMap
	}
	bodyPart struct {
		request  extprocv3.ProcessingRequest_RequestBody
		response extprocv3.ProcessingRequest_ResponseBody
		body     extprocv3.HttpBody
	}
)

// Read reads a message into the empty m, and reports success; otherwise m has a part of it. m keeps b, which must not
// be changed afterwards.
func Read(b []byte, m *extprocv3.ProcessingRequest) bool {
	structs := true // the filters' structs are read: no body or trailers came before them
	f := fields{rest: b}
	for f.next() {
		ok := false
		switch f.tag {
		case requestHeadersTag, responseHeadersTag:
			ok = m.Request == nil && readHeaders(f.bytes, f.tag == requestHeadersTag, m)
		case requestBodyTag, responseBodyTag:
			ok, structs = m.Request == nil && readBody(f.bytes, f.tag == requestBodyTag, m), false
		case requestTrailersTag, responseTrailersTag:
			ok, structs = m.Request == nil && readTrailers(f.bytes, f.tag == requestTrailersTag, m), false
		case metadataTag:
			ok = m.MetadataContext == nil && readMetadata(f.bytes, m, structs)
		case attributesTag:
			m.Attributes, ok = addStruct(m.Attributes, f.bytes)
		case observabilityTag:
			m.ObservabilityMode, ok = protowire.DecodeBool(f.number), true
		case protocolTag:
			ok = m.ProtocolConfig == nil && readProtocol(f.bytes, m)
		}
		if !ok {
			return false
		}
	}
	return !f.bad
}

func readHeaders(b []byte, request bool, m *extprocv3.ProcessingRequest) bool {
	part := &headersPart{}
	h := &part.headers
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case headersTag:
			if h.Headers != nil || !readHeaderMap(f.bytes, &part.list) {
				return false
			}
			h.Headers = &part.list
		case endOfHeadersTag:
			h.EndOfStream = protowire.DecodeBool(f.number)
		default:
			return false
		}
	}
	if request {
		part.request.RequestHeaders, m.Request = h, &part.request
	} else {
		part.response.ResponseHeaders, m.Request = h, &part.response
	}
	return !f.bad
}

func readTrailers(b []byte, request bool, m *extprocv3.ProcessingRequest) bool {
	t, list := &extprocv3.HttpTrailers{}, &corev3.HeaderMap{}
	f := fields{rest: b}
	for f.next() {
		if f.tag != headersTag || t.Trailers != nil || !readHeaderMap(f.bytes, list) {
			return false
		}
		t.Trailers = list
	}
	if request {
		m.Request = &extprocv3.ProcessingRequest_RequestTrailers{RequestTrailers: t}
	} else {
		m.Request = &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: t}
	}
	return !f.bad
}

func readBody(b []byte, request bool, m *extprocv3.ProcessingRequest) bool {
	part := &bodyPart{}
	h := &part.body
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case bodyTag:
			h.Body = f.bytes
		case endOfBodyTag:
			h.EndOfStream = protowire.DecodeBool(f.number)
		case endWithoutMessageTag:
			h.EndOfStreamWithoutMessage = protowire.DecodeBool(f.number)
		default:
			return false
		}
	}
	if request {
		// The capacity behind it is the message's, so that its holder accounts for all kept memory.
		part.request.RequestBody, m.Request = h, &part.request
	} else {
		h.Body = slices.Clip(h.Body)
		part.response.ResponseBody, m.Request = h, &part.response
	}
	return !f.bad
}

// readHeaderMap reads the headers; their names and raw values remain parts of b.
func readHeaderMap(b []byte, m *corev3.HeaderMap) bool {
	values := make([]corev3.HeaderValue, count(b, headersTag))
	list := make([]*corev3.HeaderValue, 0, len(values))
	f := fields{rest: b}
	for f.next() {
		if f.tag != headersTag {
			return false
		}
		v := &values[len(list)]
		if !readHeader(f.bytes, v) {
			return false
		}
		list = append(list, v)
	}
	m.Headers = list
	return !f.bad
}

func readHeader(b []byte, v *corev3.HeaderValue) bool {
	f := fields{rest: b}
	for f.next() {
		if f.tag != rawValueTag && !utf8.Valid(f.bytes) {
			return false
		}
		switch f.tag {
		case keyTag:
			v.Key = unsafe.String(unsafe.SliceData(f.bytes), len(f.bytes))
		case valueTag:
			v.Value = string(f.bytes)
		case rawValueTag:
			v.RawValue = slices.Clip(f.bytes)
		default:
			return false
		}
	}
	return !f.bad
}

func readProtocol(b []byte, m *extprocv3.ProcessingRequest) bool {
	p := &extprocv3.ProtocolConfiguration{}
	m.ProtocolConfig = p
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case requestBodyModeTag:
			p.RequestBodyMode = modev3.ProcessingMode_BodySendMode(f.number)
		case responseBodyModeTag:
			p.ResponseBodyMode = modev3.ProcessingMode_BodySendMode(f.number)
		case withoutWaitingTag:
			p.SendBodyWithoutWaitingForHeaderResponse = protowire.DecodeBool(f.number)
		default:
			return false
		}
	}
	return !f.bad
}
