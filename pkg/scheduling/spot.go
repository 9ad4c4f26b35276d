package scheduling

// vital is what totals and limits depend on in a snapshot's endpoint. It is comparable, so that a board can detect
// changes.
type vital struct {
	upperBound int64
	limit      int32 // MaxInFlight, or noLimit
	slots      int32
	ready      bool
}

const noLimit = int32(^uint32(0) >> 1)

func vitalOf(e *Endpoint) vital {
	v := vital{upperBound: e.UpperBound, limit: noLimit, slots: int32(min(e.Slots, int(noLimit))), ready: e.Ready}
	if e.MaxInFlight > 0 {
		v.limit = int32(min(e.MaxInFlight, int(noLimit)))
	}
	return v
}

// spot is an endpoint's live state on a board.
type spot struct {
	vital
	inFlight int32
	signals  Signals
	total    Total // the live scorers' sum, updated when their input changes
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
	return Load{InFlight: int(s.inFlight), UpperBound: s.upperBound, Slots: int(s.slots), Signals: s.signals}
}

// readyStock returns what the endpoint adds to the stock of the ready endpoints.
func (s *spot) readyStock() int64 {
	if !s.ready {
		return 0
	}
	return int64(s.inFlight)
}
