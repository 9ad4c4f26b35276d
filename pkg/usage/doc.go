// Package usage reads the token usage that an engine reports in its response, while the response passes by in parts,
// and takes the event with the usage out again, unless the client has asked for it.
//
// A response is one JSON document or a stream of server-sent events, of chat completions, completions, messages or
// responses. Parts may be cut anywhere. Reading keeps nothing of the response but the numbers; taking out keeps no more
// than one event that has not ended, of at most 16 KiB. The package knows nothing of HTTP, Envoy or Weir.
package usage
