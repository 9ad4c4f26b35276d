// Package envoyfacts repeats, on a real Envoy, what Weir is built upon. Its tests do not run Weir: each conducts the
// ext_proc streams by hand, message by message, and says what Envoy does. A comment in quotes is the fact. If a new Envoy
// fails a test here, Weir is wrong about Envoy, and the place to look is pkg/extproc.
//
// The shipped configurations (config/envoy) are held to the same: Envoy accepts each as it is, serves with it, and has
// in it what protects an installation.
//
//	go test ./test/envoyfacts
package envoyfacts
