package metering

import "time"

// lastAnswers is the largest number of answers that Seen counts.
const lastAnswers = 1000

// Seen counts the sources of usage of requests charged in tokens.
type Seen struct {
	// Last is when usage last came from each source; a source without any is missing.
	Last map[Way]time.Time
	// Answers is the number of last ended requests, at most 1,000, without those of which nothing was served; Unknown
	// is the number of these without usage.
	Answers, Unknown int
}

// Seen returns the counts of usage so far.
func (m *Meter) Seen() Seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen.show()
}

// seen counts the last answers with and without usage.
type seen struct {
	trailers, body time.Time
	without        [lastAnswers]bool // a ring
	answers, next  int
	unknown        int
}

// known counts an answer whose usage has come.
func (s *seen) known(by Way, now time.Time) {
	if by == Trailers {
		s.trailers = now
	} else {
		s.body = now
	}
	s.count(false)
}

// count counts an answer in the place of the oldest.
func (s *seen) count(without bool) {
	if s.without[s.next] {
		s.unknown--
	}
	if without {
		s.unknown++
	}
	s.without[s.next] = without
	s.next = (s.next + 1) % lastAnswers
	s.answers = min(s.answers+1, lastAnswers)
}

func (s *seen) show() Seen {
	shown := Seen{Last: map[Way]time.Time{}, Answers: s.answers, Unknown: s.unknown}
	for way, last := range map[Way]time.Time{Trailers: s.trailers, Body: s.body} {
		if !last.IsZero() {
			shown.Last[way] = last
		}
	}
	return shown
}
