package scheduling

import "slices"

// ring is the order of a pool's endpoints, by ID, and so defines each one's position. It is immutable.
type ring struct{ ids []EndpointID }

// position returns the endpoint's position.
func (r *ring) position(id EndpointID) (int32, bool) {
	p := r.atLeast(id)
	return p, int(p) < len(r.ids) && r.ids[p] == id
}

// after returns the position that follows the endpoint's, in ring order; the endpoint need not be in the pool. It is 0
// in an empty pool.
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
	// IDs are assigned consecutively, so an endpoint is usually at the position that it would have if none were
	// missing.
	guess := min(max(int(id)-int(r.ids[0]), 0), len(r.ids)-1)
	if r.ids[guess] == id {
		return int32(guess)
	}
	p, _ := slices.BinarySearch(r.ids, id)
	return int32(p)
}
