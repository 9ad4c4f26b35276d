//go:build race

package flowcontrol

// The race detector makes a million requests take a minute, and finds nothing in them that it does not find in fewer:
// `make core` uses them all.
func init() { identities = 100_000 }
