package stock

// room is what is left below the lower or the upper bounds of the ready backends. It knows each backend's bound in two
// parts: whole requests, of which each backend's own are for it alone, and the rest, which is less than a request. The rests
// of all add up to whole requests, of which each backend that has one takes at most one.
//
//	room = Σ max(0, whole(b) − held(b)) + max(0, ceil(Σ rest(b)) − filled)
//
// where filled is the number of backends that hold a request on their rest. So stock that exceeds a backend's own bound
// is not counted against the others, and 25 backends with 2.2 hold 55. (ADR 0134.)
type room struct {
	whole  int   // Σ max(0, whole − held)
	filled int   // backends with a rest that hold more than whole
	rest   Micro // Σ rest
}

// add adds one more backend that holds so much, or removes it, by the sign.
func (r *room) add(bound Micro, held, sign int) {
	whole, rest := int(bound/One), bound%One
	r.whole += sign * max(0, whole-held)
	r.rest += Micro(sign) * rest
	if rest > 0 && held > whole {
		r.filled += sign
	}
}

// left returns the room in requests once so many of those that fill a rest are gone.
func (r *room) left(gone int) int { return r.whole + max(0, r.rest.Ceil()-r.filled+gone) }
