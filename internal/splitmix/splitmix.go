// Package splitmix has the one finaliser of SplitMix64.
package splitmix

// Mix spreads the bits of a number: the result looks random, and differs for different arguments.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
