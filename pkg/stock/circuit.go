package stock

import "time"

// Parameters of a Circuit.
const (
	circuitAnswers = 16               // the last answers that it considers
	circuitFails   = 8                // failures among them that open it
	circuitFlows   = 3                // flows whose failures suffice to blame the engine
	circuitShort   = time.Second      // its first open time
	circuitLong    = 30 * time.Second // the longest
)

// Failure is the evidence of an answer against the engine.
type Failure uint8

// The failures. A full one counts as two halves.
const (
	NoFailure Failure = iota
	HalfFailure
	FullFailure
)

// FailureOf returns the evidence of an answer's status against its engine. 500, 502, 503 and 504 are failures; Envoy
// also reports reset connections with these. 429 is half a failure; every other status does not concern the engine.
func FailureOf(status int) Failure {
	switch status {
	case 500, 502, 503, 504:
		return FullFailure
	case 429:
		return HalfFailure
	}
	return NoFailure
}

// CircuitState is the state of a Circuit.
type CircuitState uint8

// The states.
const (
	CircuitClosed   CircuitState = iota // the engine gets requests
	CircuitOpen                         // it gets none until a time
	CircuitHalfOpen                     // it gets one, as a trial
	CircuitTrial                        // its trial is running; it gets another after a time
)

// String returns the state in words.
func (s CircuitState) String() string {
	return [...]string{"closed", "open", "half-open", "trial"}[s]
}

// Circuit keeps requests from a backend whose engine fails. It opens for 1 s after half of its last 16 answers were
// failures, and then lets one request through as a trial. The first success closes it, and each further failure doubles
// the time up to 30 s. The zero value is closed.
type Circuit struct {
	state  CircuitState
	until  time.Time     // open, trial: that state's end
	opened time.Time     // unless it is closed, answers to earlier requests do not count
	wait   time.Duration // the length of its last open time

	answers [circuitAnswers]circuitAnswer // a ring
	n       int                           // answers while closed
}

type circuitAnswer struct {
	flow   string `graph:"key"`
	failed Failure
}

// State returns the state.
func (c *Circuit) State() CircuitState { return c.state }

// Shut reports whether the backend may get no request now.
func (c *Circuit) Shut() bool { return c.state == CircuitOpen || c.state == CircuitTrial }

// Concerns reports whether the answer to a request sent at this time counts: unless the circuit is closed, only
// requests sent since it opened do.
func (c *Circuit) Concerns(sent time.Time) bool {
	return c.state == CircuitClosed || !sent.Before(c.opened)
}

// Until returns when a circuit that is shut lets a request through.
func (c *Circuit) Until() time.Time { return c.until }

// Answered counts the answer to a request of a flow, sent at this time. It reports whether a closed circuit has enough
// failures to open: then Suspects has the flows with failures, and Open opens it.
func (c *Circuit) Answered(now, sent time.Time, flow string, f Failure) (fails bool) {
	if c.state != CircuitClosed {
		switch {
		case !c.Concerns(sent):
		case f == NoFailure:
			*c = Circuit{}
		case f == FullFailure:
			c.Open(now)
		}
		return false
	}
	c.answers[c.n%circuitAnswers] = circuitAnswer{flow, f}
	c.n++
	halves := 0
	for i := range c.answers {
		halves += int(c.answers[i].failed)
	}
	return f != NoFailure && halves >= 2*circuitFails
}

// Suspects returns the flows with failures among the last answers; enough is true if there are enough of them to blame
// the engine, regardless of their answers elsewhere.
func (c *Circuit) Suspects() (flows []string, enough bool) {
	for i := range c.answers {
		a := &c.answers[i]
		if a.failed == NoFailure {
			continue
		}
		known := false
		for _, f := range flows {
			known = known || f == a.flow
		}
		if !known {
			flows = append(flows, a.flow)
		}
	}
	return flows, len(flows) >= circuitFlows
}

// Open opens the circuit for 1 s, or if it was not closed, for twice its last time.
func (c *Circuit) Open(now time.Time) {
	wait := min(max(circuitShort, 2*c.wait), circuitLong)
	*c = Circuit{state: CircuitOpen, until: now.Add(wait), opened: now, wait: wait}
}

// OpenLong opens the circuit for the longest time, 30 s.
func (c *Circuit) OpenLong(now time.Time) {
	c.wait = circuitLong
	c.Open(now)
}

// Advance lets one request through a circuit whose time is over, and reports whether it has.
func (c *Circuit) Advance(now time.Time) (lets bool) {
	if !c.Shut() || now.Before(c.until) {
		return false
	}
	c.state = CircuitHalfOpen
	return true
}

// Try notes that a half-open circuit has let its request through.
func (c *Circuit) Try(now time.Time) { c.state, c.until = CircuitTrial, now.Add(c.wait) }

// Close closes the circuit and forgets its observations.
func (c *Circuit) Close() { *c = Circuit{} }
