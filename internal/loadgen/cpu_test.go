package loadgen

import (
	"os"
	"testing"
	"time"
)

// The name of a process may hold anything; user and system time are counted after it.
func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 250 50 7 7 20 0 1 0"
	for _, name := range []string{"epp", "a b", "x) S 1 2 3 4 5 6 7 8 9 10 999 999 (", ")"} {
		got, err := parseStat([]byte("42 (" + name + ")" + rest))
		if err != nil || got != 3*time.Second {
			t.Errorf("%q: %v, %v; want 3 s", name, got, err)
		}
	}
	for _, broken := range []string{"", "42 (epp) S 1 2", "42 (epp) S 1 2 3 4 5 6 7 8 9 10 x 50 7"} {
		if got, err := parseStat([]byte(broken)); err == nil {
			t.Errorf("%q: %v, want an error", broken, got)
		}
	}
}

// A process that works has used processor time, and more later.
func TestProcessCPU(t *testing.T) {
	first, err := ProcessCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for { // until the next tick, 10 ms of work away at most
		now, err := ProcessCPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now > first {
			return
		}
	}
}
