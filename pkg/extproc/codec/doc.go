// Package codec decodes and encodes the messages of Envoy's external processing protocol for gRPC, several times cheaper
// than the generated code, with the same result.
//
// It owns the wire format of ProcessingRequest and the sending of pre-encoded replies. It does not know the meaning of
// a message to Weir.
//
// # Decoding
//
// The generated code finds fields by reflection: it allocates every header, name and value separately, and looks up the
// types of a map for every entry. That takes a third of the CPU time of an endpoint picker. This package reads the
// fields that Envoy 1.40 sends, by their tags, into the same generated structs:
//
//	ProcessingRequest   2-7 request (one of: headers, body, trailers), 8 metadata_context, 9 attributes,
//	                    10 observability_mode, 11 protocol_config
//	HttpHeaders         1 headers, 3 end_of_stream
//	HttpTrailers        1 trailers
//	HeaderMap           1 headers: 1 key, 2 value, 3 raw_value
//	HttpBody            1 body, 2 end_of_stream, 3 end_of_stream_without_message
//	Metadata            1 filter_metadata (Struct), 2 typed_filter_metadata (Any). Behind a body or trailers the former
//	                    is skipped: Weir reads it with headers only, and Envoy sends all of it with every message
//	Struct              1 fields: 1 key, 2 Value: 2 number, 3 string, 4 bool, 5 struct, 6 list
//	TokenUsage          all fields (ReadUsage)
//
// Any other message is left as a whole to the generated code: with a field or a wire type not in this list, a repeated
// submessage (whose parts would have to be merged), a string that is not UTF-8, nesting deeper than maxDepth, or a
// truncated end. So a message has one meaning for all readers.
//
// # Replies
//
// Most replies are one of a few, perhaps with a part for one request. Protobuf merges concatenated messages, so such a
// reply is the bytes of the shared part, encoded once, followed by those of the own part (Encoded). It is passed as a
// ProcessingResponse whose unknown fields are those bytes: any encoder sends them unchanged, this one without reading
// the message.
//
// # Invariants
//
//   - A message that is decoded here equals the generated code's result, except for the skipped parts, or the generated
//     code decodes it (FuzzRead; every message of test/envoyfacts is compared).
//   - A message has its own copy of its bytes: gRPC reuses its buffers after Unmarshal returns. Nothing overwrites the
//     copy, except that the holder of a request's body may append behind it. Names of headers, raw values and bodies
//     are parts of that copy; all other strings are separate copies, so that a flow's key does not keep a message in
//     memory.
//   - Messages of other services pass through the generated code. Only the generated code returns errors.
package codec
