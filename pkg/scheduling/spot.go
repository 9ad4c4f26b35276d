package scheduling

// vital is what totals and limits depend on in a snapshot's endpoint. It is comparable, so that a board can detect
// changes.
type vital struct {
	limit int32 // MaxInFlight, or noLimit
	slots int32
	ready bool
}

const noLimit = int32(^uint32(0) >> 1)

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
	lower, upper int64 // its share of a lane's band, in millionths of a request
	signals      Signals
	total        Total // the live scorers' sum, updated when their input changes
}

// open reports whether the endpoint can be picked.
func (s *spot) open() bool { return s.ready && s.inFlight < s.limit }

// leaf returns the endpoint's total in the tournament.
func (s *spot) leaf() Total {
	if !s.open() {
		return out
	}
	return s.total
}

// rate recomputes the total.
func (s *spot) rate(live []weighted) {
	s.total = 0
	load := s.load()
	for i := range live {
		s.total += live[i].of(live[i].live(load))
	}
}

func (s *spot) load() Load {
	return Load{InFlight: int(s.inFlight), UpperBound: s.upper, Slots: int(s.slots), Signals: s.signals}
}

// sums are over ready endpoints: the requests in flight there, and the bounds in millionths of a request.
type sums struct{ stock, lower, upper int64 }

// add adds an endpoint, if it is ready.
func (x *sums) add(s *spot) {
	if s.ready {
		x.stock += int64(s.inFlight)
		x.lower += s.lower
		x.upper += s.upper
	}
}

// subtract is the opposite of add.
func (x *sums) subtract(s *spot) {
	if s.ready {
		x.stock -= int64(s.inFlight)
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
