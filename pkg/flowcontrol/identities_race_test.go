//go:build race

package flowcontrol

// The race detector makes each identity ten times slower, and what is kept is full after 20,000.
func init() { *identities = 25_000 }
