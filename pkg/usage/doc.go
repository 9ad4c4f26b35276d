// Package usage reads an engine's token usage from its response, which comes in parts, and removes the usage event
// unless the client has requested it.
//
// A response is one JSON document or a stream of server-sent events, of chat completions, completions, messages or
// responses. Parts may be cut anywhere. Reading keeps only the numbers of the response; removing keeps at most one
// unfinished event of at most 16 KiB. The package knows nothing of HTTP, Envoy or Weir.
package usage
