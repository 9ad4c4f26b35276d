package scheduling

import (
	"fmt"
	"iter"
)

// Role is what an endpoint does for a request.
type Role uint8

const (
	// Serving is the role of the endpoint that answers, and does everything else that no other one does.
	Serving Role = iota
	// Prefilling is that of the engine that reads the prompt for it.
	Prefilling

	maxRoles
)

// Reservation is what a placement holds: endpoints, each in one role, at which the board counts the request. It is a
// small value that whoever keeps leases may inspect and copy; it is released once, whole or role by role. The zero
// value holds nothing.
type Reservation struct {
	held   [maxRoles]int32 // by role: the endpoint's ID + 1, or 0 for none
	prompt int32           // the tokens that the one in the role Prefilling has to read
}

// Reserved returns the value of a reservation of one endpoint, Serving. It counts nothing: only Board.Place and PlaceAt
// do.
func Reserved(id EndpointID) Reservation { return Reservation{}.with(Serving, id) }

func (r Reservation) with(role Role, id EndpointID) Reservation {
	r.held[role] = int32(id) + 1
	return r
}

// Empty reports whether the reservation holds nothing.
func (r Reservation) Empty() bool { return r == Reservation{} }

// In returns the endpoint held in the role; NoEndpoint if there is none.
func (r Reservation) In(role Role) EndpointID {
	if int(role) >= len(r.held) {
		return NoEndpoint
	}
	return EndpointID(r.held[role] - 1)
}

// Endpoint returns the endpoint that serves the request; NoEndpoint if there is none.
func (r Reservation) Endpoint() EndpointID { return r.In(Serving) }

// Take removes a role from the reservation, and returns it as one of its own.
func (r *Reservation) Take(role Role) (taken Reservation) {
	if taken.held[role], r.held[role] = r.held[role], 0; role == Prefilling {
		taken.prompt, r.prompt = r.prompt, 0
	}
	return taken
}

// Join returns a reservation of what both hold, which must be different roles.
func (r Reservation) Join(o Reservation) Reservation {
	for role, held := range o.held {
		r.held[role] += held
	}
	r.prompt += o.prompt
	return r
}

// All lists the endpoints held, in order of role.
func (r Reservation) All() iter.Seq2[Role, EndpointID] {
	return func(yield func(Role, EndpointID) bool) {
		for role, held := range r.held {
			if held != 0 && !yield(Role(role), EndpointID(held-1)) {
				return
			}
		}
	}
}

// Release releases everything that the reservation holds, and empties it; its endpoints may have left the pool
// meanwhile. It panics if an endpoint was never reserved.
func (b *Board) Release(r *Reservation) {
	for role := range r.held {
		b.ReleaseIn(r, Role(role))
	}
}

// ReleaseIn releases one role; the others are still held. It does nothing if the role holds nothing.
func (b *Board) ReleaseIn(r *Reservation, role Role) {
	id := r.In(role)
	if id == NoEndpoint {
		return
	}
	b.unreserve(id)
	if role == Prefilling {
		b.addPrompt(id, -int64(r.prompt))
		r.prompt = 0
	}
	r.held[role] = 0
}

// unreserve counts one request fewer at the endpoint.
func (b *Board) unreserve(id EndpointID) {
	p, ok := b.ring.position(id)
	switch {
	case ok && b.spots[p].inFlight > 0:
		b.count(p, -1)
	case !ok && b.gone[id].inFlight > 1:
		g := b.gone[id]
		g.inFlight--
		b.gone[id] = g
	case !ok && b.gone[id].inFlight == 1:
		delete(b.gone, id)
	default:
		panic(fmt.Sprintf("scheduling: nothing is in flight at endpoint %d", id))
	}
	b.total--
}
