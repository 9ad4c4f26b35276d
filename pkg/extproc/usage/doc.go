// Package usage reads the token usage that an engine reports in its response, while the response passes by in parts.
//
// A response is one JSON document or a stream of server-sent events, of chat completions, completions, messages or
// responses. Parts may be cut anywhere. The package keeps nothing of the response but the numbers, and knows nothing of
// HTTP, Envoy or Weir: bytes in, numbers out.
package usage
