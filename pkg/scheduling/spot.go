package scheduling

// vital is what totals and limits depend on in a snapshot's endpoint. It is comparable, so that a board can detect
// changes.
type vital struct {
	limit int32 // MaxInFlight, or noLimit
	slots int32
	ready bool
}

const noLimit = int32(^uint32(0) >> 1)

// maxForeign bounds the requests of others at an endpoint, so that sums are exact.
const maxForeign = 1_000_000

func vitalOf(e *Endpoint) vital {
	v := vital{limit: noLimit, slots: int32(min(e.Slots, int(noLimit))), ready: e.Ready}
	if e.MaxInFlight > 0 {
		v.limit = int32(min(e.MaxInFlight, int(noLimit)))
	}
	return v
}

// spot is an endpoint's live state on a board.
type spot struct {
	vital
	inFlight     int32
	foreign      int32 // requests of others there; 0 unless it is ready
	lower, upper int64 // its share of a lane's band, in millionths of a request
	tokens       tokens
	signals      Signals
	total        Standing // updated when the load changes
}

// held returns the number of requests there, Weir's own and those of others.
func (s *spot) held() int32 { return s.inFlight + s.foreign }

// become changes what the snapshot says of the endpoint. What others have at one that is not ready is forgotten.
func (s *spot) become(v vital) {
	if s.vital = v; !v.ready {
		s.foreign, s.tokens.foreign = 0, 0
	}
}

// leaf returns the endpoint's total in the tournament, where those that are not full by tokens come before all that are.
func (s *spot) leaf() Standing {
	switch {
	case !s.ready || s.held() >= s.limit:
		return out
	case s.tokens.full():
		return s.total
	}
	return s.total + notFull
}

// rate recomputes the total.
func (s *spot) rate(by comparison) { s.total = by.standing(s.load()) }

func (s *spot) load() Load {
	load := Load{Held: int(s.held()), UpperBound: s.upper, TokenBound: s.tokens.upper, Slots: int(s.slots), Signals: s.signals}
	if load.TokenBound > 0 {
		load.Tokens = s.tokens.held()
	}
	return load
}

func (s *spot) share() Share {
	share := Share{InFlight: int(s.inFlight), Foreign: int(s.foreign), Tokens: s.tokens.own, ForeignTokens: s.tokens.foreign}
	if s.ready {
		share.LowerBound, share.UpperBound, share.TokenBound = s.lower, s.upper, s.tokens.upper
		share.Unbounded = s.lower == maxBound
	}
	return share
}

// sums are over ready endpoints: the requests there, and the bounds in millionths of a request.
type sums struct{ held, lower, upper int64 }

// add adds an endpoint, if it is ready.
func (x *sums) add(s *spot) {
	if s.ready {
		x.held += int64(s.held())
		x.lower += s.lower
		x.upper += s.upper
	}
}

// subtract is the opposite of add.
func (x *sums) subtract(s *spot) {
	if s.ready {
		x.held -= int64(s.held())
		x.lower -= s.lower
		x.upper -= s.upper
	}
}

func (x *sums) bound(which Bound) int64 {
	if which == BelowUpper {
		return x.upper
	}
	return x.lower
}
