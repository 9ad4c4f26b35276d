package body

import "math"

// Hints are a request's nvext.agent_hints, Dynamo's extension of OpenAI's API. A missing or null hint is Absent; a
// number in a string counts, and an unreadable or negative number is 0.
type Hints struct {
	// Priority and StrictPriority are the request's priorities within its class.
	Priority, StrictPriority int64
	// OutputTokens is osl, the client's expected length of the answer.
	OutputTokens int64
	// LatencySensitivity is in seconds, rounded up.
	LatencySensitivity int64
}

var noHints = Hints{Absent, Absent, Absent, Absent}

// extension reads nvext. The last of several counts.
func (s *scanner) extension(f *Fields) error {
	f.Hints = noHints
	return s.object(1, func(key []byte) error {
		if string(key) != "agent_hints" {
			return s.value(2)
		}
		f.Hints = noHints
		return s.object(2, func(key []byte) error {
			switch string(key) {
			case "priority":
				return s.integer(&f.Hints.Priority)
			case "strict_priority":
				return s.integer(&f.Hints.StrictPriority)
			case "osl":
				return s.integer(&f.Hints.OutputTokens)
			case "latency_sensitivity":
				return s.rounded(&f.Hints.LatencySensitivity)
			}
			return s.value(3)
		})
	})
}

// object scans the members of an object of this depth, and skips any other value.
func (s *scanner) object(depth int, value func(key []byte) error) error {
	if s.b[s.i] != '{' {
		return s.value(depth)
	}
	s.i++
	return s.members(value)
}

// rounded is integer with rounding up.
func (s *scanner) rounded(to *int64) error {
	start := s.i
	if err := s.integer(to); err != nil {
		return err
	}
	b := s.b[start:s.i]
	if b[0] == '"' {
		b = inString(b[1 : len(b)-1])
	}
	if v, ok := number(b); ok && v > 0 && v < maxInteger {
		*to = int64(math.Ceil(v))
	}
	return nil
}
