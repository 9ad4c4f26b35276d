package scheduling

import (
	"fmt"
	"iter"
)

// Role is what an endpoint does for a request.
type Role uint8

// Serving is the only role yet: the endpoint does all of the request.
const Serving Role = 0

// maxRoles is how many a Reservation has room for: prefill and decode will be two.
const maxRoles = 2

// Reservation is what a placement holds: endpoints, each in one role, at which the board counts the request. It is a
// small value, to be looked at and copied by whoever keeps leases; it is given back once, whole or role by role. The
// zero value holds nothing.
type Reservation struct {
	held [maxRoles]int32 // by role: the endpoint's ID + 1; 0: none
}

// Reserved is the value of a reservation of one endpoint, Serving. It counts nothing anywhere: Board.Place and PlaceAt
// do.
func Reserved(id EndpointID) Reservation { return Reservation{}.with(Serving, id) }

func (r Reservation) with(role Role, id EndpointID) Reservation {
	r.held[role] = int32(id) + 1
	return r
}

// Empty reports whether it holds nothing.
func (r Reservation) Empty() bool { return r == Reservation{} }

// In returns the endpoint that it holds in the role, NoEndpoint if none.
func (r Reservation) In(role Role) EndpointID {
	if int(role) >= len(r.held) {
		return NoEndpoint
	}
	return EndpointID(r.held[role] - 1)
}

// Endpoint returns the endpoint that serves the request, NoEndpoint if it holds none.
func (r Reservation) Endpoint() EndpointID { return r.In(Serving) }

// Holds reports whether it holds the endpoint, in any role.
func (r Reservation) Holds(id EndpointID) bool {
	for _, held := range r.All() {
		if held == id {
			return true
		}
	}
	return false
}

// All lists what it holds, in order of role.
func (r Reservation) All() iter.Seq2[Role, EndpointID] {
	return func(yield func(Role, EndpointID) bool) {
		for role, held := range r.held {
			if held != 0 && !yield(Role(role), EndpointID(held-1)) {
				return
			}
		}
	}
}

// Release gives back all that the reservation holds, and empties it; its endpoints may have left the pool meanwhile. What
// was never reserved is a broken contract and panics.
func (b *Board) Release(r *Reservation) {
	for role := range r.held {
		b.ReleaseIn(r, Role(role))
	}
}

// ReleaseIn is Release for one role; the others are still held. A role that holds nothing is left as it is.
func (b *Board) ReleaseIn(r *Reservation, role Role) {
	id := r.In(role)
	if id == NoEndpoint {
		return
	}
	b.unreserve(id)
	r.held[role] = 0
}

// unreserve counts one request less at the endpoint.
func (b *Board) unreserve(id EndpointID) {
	p, ok := b.ring.position(id)
	switch {
	case ok && b.spots[p].inFlight > 0:
		b.count(p, -1)
	case !ok && b.gone[id] > 1:
		b.gone[id]--
	case !ok && b.gone[id] == 1:
		delete(b.gone, id)
	default:
		panic(fmt.Sprintf("scheduling: nothing is in flight at endpoint %d", id))
	}
	b.total--
	for _, completed := range b.scheduler.completed {
		completed(id)
	}
}
