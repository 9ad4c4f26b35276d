// Package body reads what matters of an inference request's body in one pass, without decoding it, and replaces the
// model's name in place. A body is JSON, or a multipart form (form.go), and it is whole: of duplicates the last one counts,
// so that a part says nothing.
//
// The scan accepts exactly what RFC 8259 does, up to a depth, and finds the fields that engines read at the top
// level. It reads them as engines do: of duplicate keys the last one wins, keys are compared after their escapes were
// decoded and with their case, and a key inside of another value does not count.
//
// It knows nothing of HTTP, Envoy or policies: bytes in, fields out.
package body
