package expect

import (
	"errors"
	"testing"
	"time"
)

// Patience bounds every wait for a state, far above what any of them takes, so that only a defect reaches it.
const Patience = 2 * time.Minute

// errNotYet is the state of a condition that cannot say more.
var errNotYet = errors.New("not yet")

// Eventually waits until a condition returns nil, and otherwise fails the test with its last error.
func Eventually(t testing.TB, what string, holds func() error) {
	t.Helper()
	Within(t, Patience, what, holds)
}

// True is Eventually for a condition without an error.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Within(t, Patience, what, func() error {
		if !holds() {
			return errNotYet
		}
		return nil
	})
}

// Within is Eventually with another bound, for states with a promised or a longer time.
func Within(t testing.TB, bound time.Duration, what string, holds func() error) {
	t.Helper()
	for begin := time.Now(); ; {
		err := holds()
		waited := time.Since(begin)
		switch {
		case err == nil:
			return
		case waited > bound:
			t.Fatalf("%s: not within %v: %v", what, bound, err)
		}
		// The pauses grow with the wait: Prometheus and an apiserver work for each question.
		time.Sleep(min(max(waited/20, 5*time.Millisecond), 50*time.Millisecond))
	}
}
