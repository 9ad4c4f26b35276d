package scheduling

// vital has the parts of a snapshot's endpoint that affect totals and limits. It is comparable, so that a board can
// detect changes.
type vital struct {
	limit int32 // MaxInFlight, or noLimit
	slots int32
	ready bool // and it serves requests
	work  Work
	reads bool  // it is a ready prefill engine
	most  int64 // PrefillTokens
	lacks Needs
	// priority is in the range of MaxPriority.
	priority int32
	batched  int64 // MaxBatchedTokens
}

const noLimit = int32(^uint32(0) >> 1)

// maxForeign bounds other Weirs' requests at an endpoint, so that sums are exact.
const maxForeign = 1_000_000

func vitalOf(e *Endpoint) vital {
	v := vital{
		limit: noLimit, slots: int32(min(e.Slots, int(noLimit))), ready: e.Ready && e.Work.Serves(),
		work: e.Work, reads: e.Ready && e.Work == WorkPrefill, most: e.PrefillTokens,
		lacks: e.Lacks, priority: int32(max(-MaxPriority, min(e.Priority, MaxPriority))),
		batched: e.MaxBatchedTokens,
	}
	if e.MaxInFlight > 0 {
		v.limit = int32(min(e.MaxInFlight, int(noLimit)))
	}
	return v
}

// spot is an endpoint's live state on a board.
type spot struct {
	vital
	inFlight     int32
	foreign      int32 // other Weirs' requests there; 0 unless it is ready
	turned       bool  // it is in Board.turned
	lower, upper int64 // its share of a lane's band, in millionths of a request
	whole        sides // of each bound: the whole requests, and the rest in millionths
	rest         sides
	tokens       tokens
	prompts      int64 // the counted uncached prompt tokens that it has to read (unread.go)
	signals      Signals
	adapters     *loaded  // nil: it never had any
	total        Standing // updated when the load changes
	means        means
}

// held returns the number of requests there, of this and other Weirs.
func (s *spot) held() int32 { return s.inFlight + s.foreign }

// become changes the snapshot's part of the endpoint. An endpoint that is not ready loses its foreign requests.
func (s *spot) become(v vital) {
	if s.vital = v; !v.ready {
		s.foreign, s.tokens.foreign = 0, 0
	}
}

// bound sets the endpoint's share of a lane's band.
func (s *spot) bound(lower, upper int64) {
	s.lower, s.upper = lower, upper
	s.whole, s.rest = sides{lower / Millionths, upper / Millionths}, sides{lower % Millionths, upper % Millionths}
}

// rate recomputes the total.
func (s *spot) rate(by comparison) { s.total = by.standing(s.load()) }

func (s *spot) load() Load {
	load := Load{
		Held: int(s.held()), UpperBound: s.upper, TokenBound: s.tokens.upper, Slots: int(s.slots), Signals: s.signals,
		Priority: s.priority, Latency: s.means.latency, Pace: s.means.pace,
	}
	if load.TokenBound > 0 {
		load.Tokens = s.tokens.held()
	}
	return load
}

func (s *spot) share() Share {
	share := Share{InFlight: int(s.inFlight), Foreign: int(s.foreign), Tokens: s.tokens.own, ForeignTokens: s.tokens.foreign, Unread: s.prompts}
	if s.ready {
		share.LowerBound, share.UpperBound, share.TokenBound = s.lower, s.upper, s.tokens.upper
		share.Unbounded = s.lower == maxBound
	}
	return share
}

// sides are the sums by the lower and by the upper bounds.
type sides struct{ lower, upper int64 }

// of returns the sums by a bound.
func (x sides) of(which Bound) int64 {
	if which == BelowUpper {
		return x.upper
	}
	return x.lower
}

// sums are over ready endpoints.
type sums struct {
	held int64 // requests there
	// The room below the lower and the upper bounds has two parts. Whole requests of a bound are for that endpoint
	// alone; whole is the number of free ones. The rests of the bounds add up to rest, in millionths, and filled is the
	// number of endpoints that hold a request on their rest. (ADR 0134; the ledger counts the whole pool in the same
	// way.)
	whole, rest, filled sides
	bounds              sides // in millionths of a request
}

// room reports whether there is room below a bound once gone requests that fill a rest have left.
func (x *sums) room(which Bound, gone int64) bool {
	return x.whole.of(which) > 0 || (x.filled.of(which)-gone)*Millionths < x.rest.of(which)
}

// add adds an endpoint, if it is ready.
func (x *sums) add(s *spot) { x.count(s, 1) }

// subtract undoes add.
func (x *sums) subtract(s *spot) { x.count(s, -1) }

func (x *sums) count(s *spot, sign int64) {
	if s.ready {
		x.hold(s, s.held(), sign)
		x.bounds.lower += sign * s.lower
		x.bounds.upper += sign * s.upper
		x.rest.lower += sign * s.rest.lower
		x.rest.upper += sign * s.rest.upper
	}
}

// recount changes the requests at a ready endpoint.
func (x *sums) recount(s *spot, from, to int32) {
	x.hold(s, from, -1)
	x.hold(s, to, 1)
}

// hold counts, or discounts, the requests at an endpoint.
func (x *sums) hold(s *spot, n int32, sign int64) {
	held := int64(n)
	x.held += sign * held
	hold := func(whole, filled *int64, own, rest int64) {
		if held < own {
			*whole += sign * (own - held)
		} else if held > own && rest > 0 {
			*filled += sign
		}
	}
	hold(&x.whole.lower, &x.filled.lower, s.whole.lower, s.rest.lower)
	hold(&x.whole.upper, &x.filled.upper, s.whole.upper, s.rest.upper)
}
