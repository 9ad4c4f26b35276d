package scheduling

// notFull is added to the standing of an endpoint that is not full, and fullByRequests to that of an endpoint full by
// requests only. Each is more than any standing without it.
const (
	notFull        Standing = 1 << 60
	fullByRequests Standing = 1 << 59
)

// full reports whether the endpoint is at its own upper bound in requests. Without a bound it never is.
func (s *spot) full() bool { return s.upper > 0 && int64(s.held())*Millionths >= s.upper }

// full reports whether the endpoint is at its upper bound in tokens. An empty endpoint is never full, so that a request
// of any size can go somewhere.
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
