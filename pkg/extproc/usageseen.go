package extproc

import "time"

// lastAnswers is how many answers UsageSeen counts at most.
const lastAnswers = 1000

// UsageSeen is what a Server has seen of the usage of the requests that it charged in tokens.
type UsageSeen struct {
	// Last is when usage last came by each way; one by which none has come is missing.
	Last map[UsageWay]time.Time
	// Answers is the number of the last requests that have ended, at most 1,000, but for those of which nothing was
	// served; Unknown is how many of these had no usage.
	Answers, Unknown int
}

// UsageSeen returns what the server has seen of usage since its start.
func (s *Server) UsageSeen() UsageSeen {
	s.costs.mu.Lock()
	defer s.costs.mu.Unlock()
	return s.costs.seen.show()
}

// usageSeen counts the last answers with and without usage.
type usageSeen struct {
	trailers, body time.Time
	without        [lastAnswers]bool // a ring
	answers, next  int
	unknown        int
}

// known counts an answer whose usage has come.
func (u *usageSeen) known(by UsageWay, now time.Time) {
	switch by {
	case UsageTrailers:
		u.trailers = now
	case UsageBody:
		u.body = now
	default: // UsageAuto and UsageNone are settings, no way of an answer
	}
	u.count(false)
}

// count counts an answer in the place of the oldest.
func (u *usageSeen) count(without bool) {
	if u.without[u.next] {
		u.unknown--
	}
	if without {
		u.unknown++
	}
	u.without[u.next] = without
	u.next = (u.next + 1) % lastAnswers
	u.answers = min(u.answers+1, lastAnswers)
}

func (u *usageSeen) show() UsageSeen {
	s := UsageSeen{Last: map[UsageWay]time.Time{}, Answers: u.answers, Unknown: u.unknown}
	for way, last := range map[UsageWay]time.Time{UsageTrailers: u.trailers, UsageBody: u.body} {
		if !last.IsZero() {
			s.Last[way] = last
		}
	}
	return s
}

// toldBy returns by which way the stream itself has its usage, if it has any.
func (st *mainStream) toldBy() UsageWay {
	if st.told != nil {
		return UsageTrailers
	}
	return UsageBody
}
