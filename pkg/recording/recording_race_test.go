//go:build race

package recording_test

// The race detector makes a replay ten times slower, and has nothing to find in it: the machine is pure. `make unit` tries
// more.
func init() { lives, oneByteOf, explained = 3, 30, 20 }
