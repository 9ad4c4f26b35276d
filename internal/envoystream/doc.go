// Package envoystream sends Weir the messages of an Envoy with the recommended configuration, for tests without Envoy:
// a stream whose first message has a request's headers. test/envoyfacts and test/integration test a real Envoy's
// messages.
package envoystream
