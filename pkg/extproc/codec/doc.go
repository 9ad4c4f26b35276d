// Package codec decodes and encodes the messages of Envoy's external processing protocol for gRPC, several times cheaper
// than the generated code, with the same result.
//
// It owns the wire format of ProcessingRequest and the sending of replies that were encoded before. It does not know
// the meaning of a message to Weir.
//
// # Decoding
//
// The generated code finds fields by reflection: it allocates every header, its name and its value apart, and looks up the
// types of a map for every entry. A third of the processor time of an endpoint picker goes there. This package reads the
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
// Anything else is left to the generated code, from the start of the message: a field or a wire type that is not in this
// list, a submessage that comes twice (its parts would have to be merged), a string that is not UTF-8, nesting deeper than
// maxDepth, a message that is cut short. So a message has one meaning for all readers.
//
// # Replies
//
// Most replies are one of a few, or one of these with a part that belongs to one request. Protobuf merges messages that
// are concatenated, so such a reply is the bytes of the shared part, encoded once, and those of the own part behind them
// (Encoded). It travels as a ProcessingResponse whose unknown fields are those bytes: any encoder sends them as they are,
// this one without a look at the message.
//
// # Invariants
//
//   - A message that is decoded here equals the generated code's result, except for the skipped parts, or the generated
//     code decodes it (FuzzRead; every message of test/envoyfacts is compared).
//   - A message has a copy of its bytes, which it shares with no other: gRPC's buffers are gRPC's again when Unmarshal
//     returns. Nothing overwrites the copy, except that the holder of a request's body may append behind it. Names of
//     headers, raw values and bodies are parts of that copy; all other strings are copies of their own, so that a
//     flow's key keeps no message in memory.
//   - Messages of other services pass through the generated code, whose errors are the only ones.
package codec
