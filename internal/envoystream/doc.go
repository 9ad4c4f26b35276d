// Package envoystream speaks to Weir as Envoy with the recommended configuration does, for tests that need no Envoy: a
// stream whose first message has the headers of a request. The messages of a real Envoy are tested with Envoy, in
// test/envoyfacts and test/integration.
package envoystream
