package scheduling

import (
	"fmt"
	"iter"
)

// Role is an endpoint's part in a request.
type Role uint8

const (
	// Serving is the role of the endpoint that answers, and does all work that no other endpoint does.
	Serving Role = iota
	// Prefilling is the role of the engine that reads the prompt for it.
	Prefilling
)

// Reservation is the holding of a placement: endpoints, each in one role, at which the board counts the request. It is
// a small value that a lease's owner may inspect and copy; it is released once, whole or role by role. The zero value
// holds nothing.
type Reservation struct {
	// The endpoint's ID + 1 in each role, or 0 for none. An array of them would be copied through memory with each call.
	serving, prefilling int32
	prompt              int32 // the tokens to read by the endpoint in role Prefilling, or without one in role Serving
}

// Reserved returns the value of a reservation of one endpoint, in role Serving. It does not count the request; only
// Board.Place and PlaceAt do.
func Reserved(id EndpointID) Reservation { return Reservation{serving: int32(id) + 1} }

// with returns the reservation with an engine that reads a prompt of this number of tokens.
func (r Reservation) with(prefilling EndpointID, prompt int32) Reservation {
	r.prefilling, r.prompt = int32(prefilling)+1, prompt
	return r
}

// Reads reports whether the endpoint that serves the request still has to read tokens of the prompt itself.
func (r Reservation) Reads() bool { return r.prompt > 0 && r.serving != 0 && r.prefilling == 0 }

// Empty reports whether the reservation holds nothing.
func (r Reservation) Empty() bool { return r == Reservation{} }

// In returns the endpoint held in the role; NoEndpoint if there is none.
func (r Reservation) In(role Role) EndpointID {
	switch role {
	case Serving:
		return EndpointID(r.serving - 1)
	case Prefilling:
		return EndpointID(r.prefilling - 1)
	}
	return NoEndpoint
}

// Endpoint returns the endpoint that serves the request; NoEndpoint if there is none.
func (r Reservation) Endpoint() EndpointID { return EndpointID(r.serving - 1) }

// Take removes a role from the reservation, and returns it as a separate reservation.
func (r *Reservation) Take(role Role) (taken Reservation) {
	if r.reads(role) {
		taken.prompt, r.prompt = r.prompt, 0
	}
	switch role {
	case Serving:
		taken.serving, r.serving = r.serving, 0
	case Prefilling:
		taken.prefilling, r.prefilling = r.prefilling, 0
	}
	return taken
}

// reads reports whether the endpoint in the role has to read the prompt.
func (r *Reservation) reads(role Role) bool {
	if r.prefilling != 0 {
		return role == Prefilling
	}
	return role == Serving
}

// Join returns a reservation of both holdings, which must have different roles. Only one of them may have a prompt to
// be read.
func (r Reservation) Join(o Reservation) Reservation {
	return Reservation{r.serving + o.serving, r.prefilling + o.prefilling, r.prompt + o.prompt}
}

// All lists the endpoints held, in order of role.
func (r Reservation) All() iter.Seq2[Role, EndpointID] {
	return func(yield func(Role, EndpointID) bool) {
		if r.serving != 0 && !yield(Serving, r.In(Serving)) {
			return
		}
		if r.prefilling != 0 {
			yield(Prefilling, r.In(Prefilling))
		}
	}
}

// Release releases everything that the reservation holds, and empties it; its endpoints may have left the pool
// meanwhile. It panics if an endpoint was never reserved.
func (b *Board) Release(r *Reservation) {
	b.ReleaseIn(r, Serving)
	b.ReleaseIn(r, Prefilling)
}

// ReleaseIn releases one role; the others are still held. It does nothing if the role holds nothing.
func (b *Board) ReleaseIn(r *Reservation, role Role) {
	id := r.In(role)
	if id == NoEndpoint {
		return
	}
	if r.reads(role) && r.prompt > 0 { // before its count: an endpoint that has left is forgotten with that
		if role == Serving {
			b.unread -= int64(r.prompt)
		}
		b.addPrompt(id, -int64(r.prompt))
		r.prompt = 0
	}
	b.unreserve(id)
	r.Take(role)
}

// unreserve removes one request from the endpoint's count.
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
