package stock

// room is the space below the lower or the upper bounds of the ready backends. A backend's bound has two parts: whole
// requests, for that backend alone, and a rest below one request. The rests of all backends add up to whole requests,
// and each backend with a rest takes at most one of them.
//
//	room = Σ max(0, whole(b) − held(b)) + max(0, ceil(Σ rest(b)) − filled)
//
// where filled is the number of backends that hold a request on their rest. So stock above one backend's bound does not
// count against the others, and 25 backends with 2.2 hold 55. (ADR 0134.)
type room struct {
	whole  int   // Σ max(0, whole − held)
	filled int   // backends with a rest that hold more than whole
	rests  int   // ceil(Σ rest)
	rest   Micro // Σ rest
}

// parts are a backend's bound in whole requests, and the rest in millionths of a request. They are cached, since every
// request uses them.
type parts struct{ whole, rest int32 }

func partsOf(bound Micro) parts { return parts{int32(bound / One), int32(bound % One)} }

// add adds a backend that holds held requests, or removes it, by the sign.
func (r *room) add(bound parts, held, sign int) {
	r.whole += sign * max(0, int(bound.whole)-held)
	r.rest += Micro(sign) * Micro(bound.rest)
	r.rests = r.rest.Ceil()
	if bound.rest > 0 && held > int(bound.whole) {
		r.filled += sign
	}
}

// hold adds a request (1) at a backend that holds besides other requests, or removes one (-1).
func (r *room) hold(bound parts, besides, by int) {
	switch whole := int(bound.whole); {
	case besides < whole:
		r.whole -= by
	case besides == whole && bound.rest > 0:
		r.filled += by
	}
}

// left returns the room in requests once gone requests that fill a rest have left.
func (r *room) left(gone int) int { return r.whole + max(0, r.rests-r.filled+gone) }
