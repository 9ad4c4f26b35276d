// Package envoyfacts checks, on a real Envoy, the facts about Envoy that Weir relies on. Its tests do not run Weir:
// each drives the ext_proc streams by hand, message by message, and checks Envoy's messages. A quoted comment states
// the fact. If a new Envoy fails a test here, Weir's assumption about Envoy is wrong: see pkg/extproc.
//
// The tests also check the shipped configurations (config/envoy): Envoy accepts each one unchanged and serves with it,
// and each contains the settings that protect an installation.
//
//	go test ./test/envoyfacts
package envoyfacts
