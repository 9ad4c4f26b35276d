package scheduling

// notFull is the addition to the standing of an endpoint that is not full, and fullByRequests to that of one that is
// full by requests alone: each is more than any standing without it.
const (
	notFull        Standing = 1 << 60
	fullByRequests Standing = 1 << 59
)

// full reports whether as many requests are there as the endpoint's own upper bound allows. Without a bound it never is.
func (s *spot) full() bool { return s.upper > 0 && int64(s.held())*Millionths >= s.upper }

// full reports whether the endpoint takes no more requests because of the tokens of those there. One without any is never
// full, so that a request of any size can go somewhere.
func (t *tokens) full() bool { return t.upper > 0 && t.held() >= t.upper }

// leaf returns the endpoint's total in the tournament: endpoints that are not full come first, then those full by
// requests, then those full by tokens.
func (s *spot) leaf() Standing {
	switch {
	case !s.ready || s.held() >= s.limit:
		return out
	case s.tokens.full():
		return s.total
	case s.full():
		return s.total + fullByRequests
	}
	return s.total + notFull
}
