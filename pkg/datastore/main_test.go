package datastore

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test on a real file system waits for what must happen. It is long because the machine may
// be busy; a test that passes never waits for it.
const patience = 20 * time.Second

// eventually receives from c.
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
