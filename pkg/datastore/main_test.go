package datastore

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test on a real file system waits for an event. It is long because the machine may be busy; a
// passing test never waits that long.
const patience = 20 * time.Second

// eventually receives from c and fails the test after patience.
func eventually[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened", what)
		panic("unreachable")
	}
}
