package scheduling

import "slices"

// ring is the order of a pool's endpoints, that of their IDs, and so where each of them stands: its position. It is
// immutable.
type ring struct{ ids []EndpointID }

// position returns where the endpoint stands.
func (r *ring) position(id EndpointID) (int32, bool) {
	p := r.atLeast(id)
	return p, int(p) < len(r.ids) && r.ids[p] == id
}

// after returns the position that follows the endpoint's, in the pool or not, round the ring; 0 in an empty pool.
func (r *ring) after(id EndpointID) int32 {
	if p := r.atLeast(id + 1); int(p) < len(r.ids) {
		return p
	}
	return 0
}

// atLeast returns the first position whose ID is not below id.
func (r *ring) atLeast(id EndpointID) int32 {
	if len(r.ids) == 0 {
		return 0
	}
	// IDs are given out one after the other, so mostly an endpoint stands where it would if none were missing.
	guess := min(max(int(id)-int(r.ids[0]), 0), len(r.ids)-1)
	if r.ids[guess] == id {
		return int32(guess)
	}
	p, _ := slices.BinarySearch(r.ids, id)
	return int32(p)
}
