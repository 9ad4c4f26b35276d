package stock

// room is the space below the lower or the upper bounds of the ready backends. It knows each backend's bound in two
// parts: whole requests, of which each backend's own are for it alone, and the rest, which is less than a request. The
// rests of all add up to whole requests, of which each backend that has one takes at most one.
//
//	room = Σ max(0, whole(b) − held(b)) + max(0, ceil(Σ rest(b)) − filled)
//
// where filled is the number of backends that hold a request on their rest. So stock that exceeds a backend's own bound
// is not counted against the others, and 25 backends with 2.2 hold 55. (ADR 0134.)
type room struct {
	whole  int   // Σ max(0, whole − held)
	filled int   // backends with a rest that hold more than whole
	rests  int   // ceil(Σ rest)
	rest   Micro // Σ rest
}

// parts are a backend's bound in whole requests, and the rest in millionths of one. Each request is counted by them, so they
// are not computed from the bound each time.
type parts struct{ whole, rest int32 }

func partsOf(bound Micro) parts { return parts{int32(bound / One), int32(bound % One)} }

// add adds one more backend that holds so much, or removes it, by the sign.
func (r *room) add(bound parts, held, sign int) {
	r.whole += sign * max(0, int(bound.whole)-held)
	r.rest += Micro(sign) * Micro(bound.rest)
	r.rests = r.rest.Ceil()
	if bound.rest > 0 && held > int(bound.whole) {
		r.filled += sign
	}
}

// hold counts one request more (1) at a backend that holds so much besides, or one fewer (-1).
func (r *room) hold(bound parts, besides, by int) {
	switch whole := int(bound.whole); {
	case besides < whole:
		r.whole -= by
	case besides == whole && bound.rest > 0:
		r.filled += by
	}
}

// left returns the room in requests once so many of those that fill a rest are gone.
func (r *room) left(gone int) int { return r.whole + max(0, r.rests-r.filled+gone) }
