//go:build race

package dispatch

// The race detector makes the explorer ten times slower, and its goroutines share nothing but the digests: under it the
// scenes are small, and `make explore` goes through them whole.
func init() { mostRequests, mostDepth = 2, 3 }
