//go:build race

package dispatch

// The race detector makes the explorer ten times slower, and its goroutines share nothing but the digests.
func init() { mostTransitions, leastDepth = 2_000, 1 }
