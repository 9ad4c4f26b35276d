package stock

import (
	"fmt"
	"testing"
	"time"
)

// A script of answers to requests that were sent when they are answered; a number is a wait in ms.
func TestCircuit(t *testing.T) {
	begun := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		answers string // per answer: . success, x failure, h half a failure, t a trial is let through; s a second goes by
		want    CircuitState
	}{
		"seven of sixteen":                  {".........xxxxxxx", CircuitClosed},
		"eight of sixteen":                  {"........xxxxxxxx", CircuitOpen},
		"old failures are forgotten":        {"xxxxxxx................xxxxxxx", CircuitClosed},
		"429 counts half":                   {"hhhhhhhhhhhhhhh", CircuitClosed},
		"sixteen of 429":                    {"hhhhhhhhhhhhhhhh", CircuitOpen},
		"it is open for a second":           {"xxxxxxxxs", CircuitHalfOpen},
		"a trial":                           {"xxxxxxxxst", CircuitTrial},
		"a success closes it":               {"xxxxxxxxst.", CircuitClosed},
		"a failure opens it for two":        {"xxxxxxxxstxs", CircuitOpen},
		"and then it tries again":           {"xxxxxxxxstxss", CircuitHalfOpen},
		"one that hangs gives another":      {"xxxxxxxxsts", CircuitHalfOpen},
		"after a success all is forgotten":  {"xxxxxxxxst.xxxxxxx", CircuitClosed},
		"429 at the trial is no answer yet": {"xxxxxxxxsth", CircuitTrial},
	} {
		var c Circuit
		now := begun
		for i, a := range test.answers {
			failure := map[rune]Failure{'.': NoFailure, 'x': FullFailure, 'h': HalfFailure}
			switch a {
			case 's':
				now = now.Add(time.Second)
				c.Advance(now)
			case 't':
				c.Try(now)
			default:
				if c.Answered(now, now, fmt.Sprint(i%5), failure[a]) {
					if _, enough := c.Suspects(); !enough {
						t.Errorf("%s: five flows are not enough", name)
					}
					c.Open(now)
				}
			}
		}
		if c.State() != test.want {
			t.Errorf("%s: %v, want %v", name, c.State(), test.want)
		}
	}
}

// If a circuit stays closed after many failures, because the flows may be to blame, a success does not open it.
func TestASuccessOpensNothing(t *testing.T) {
	var c Circuit
	now := time.Unix(1000, 0)
	for i := range 8 {
		if fails := c.Answered(now, now, "f", FullFailure); fails != (i == 7) {
			t.Errorf("failure %d: fails %t", i+1, fails)
		}
	}
	if c.Answered(now, now, "f", NoFailure) {
		t.Error("a success says that the engine fails")
	}
	if !c.Answered(now, now, "f", FullFailure) {
		t.Error("another failure does not")
	}
}

// Each failed trial doubles the time, up to 30 s, and answers to earlier requests do not count.
func TestCircuitWaitsLonger(t *testing.T) {
	var c Circuit
	now := time.Unix(1000, 0)
	old := now.Add(-time.Millisecond)
	for range 8 {
		c.Answered(now, now, "f", FullFailure)
	}
	c.Open(now)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		want *= time.Second
		if got := c.Until().Sub(now); got != want {
			t.Fatalf("open for %v, want %v", got, want)
		}
		if c.Advance(now.Add(want - 1)) {
			t.Error("lets a request through too early")
		}
		now = now.Add(want)
		c.Advance(now)
		c.Answered(now, old, "f", NoFailure)
		c.Answered(now, old, "f", FullFailure)
		if c.State() != CircuitHalfOpen {
			t.Fatalf("%v by the answer to an old request", c.State())
		}
		c.Try(now)
		c.Answered(now, now, "f", FullFailure)
	}
}

// The statuses that count for an engine's circuit.
func TestFailureOf(t *testing.T) {
	for status, want := range map[int]Failure{
		200: NoFailure, 400: NoFailure, 404: NoFailure, 422: NoFailure, 501: NoFailure, 429: HalfFailure, 500: FullFailure,
		502: FullFailure, 503: FullFailure, 504: FullFailure, 0: NoFailure,
	} {
		if got := FailureOf(status); got != want {
			t.Errorf("%d: %d, want %d", status, got, want)
		}
	}
}
