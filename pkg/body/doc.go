// Package body reads the fields of an inference request's body that Weir needs, in one pass and without decoding the
// rest, and replaces the model's name in place. A body is JSON, or a multipart form (form.go). It must be complete: the
// last of duplicate fields counts, so a part is not enough.
//
// The scan accepts exactly the JSON of RFC 8259, up to a depth, and finds fields at the top level. It reads them like
// engines: the last of duplicate keys wins, keys are compared after decoding escapes and with case, and keys inside
// other values do not count.
//
// The package knows nothing of HTTP, Envoy or policies: bytes in, fields out.
package body
