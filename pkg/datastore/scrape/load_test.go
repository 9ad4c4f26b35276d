package scrape

import (
	"testing"
	"time"
)

// Foreign load is the least that three scrapes in a row have found, and falls evenly from 3 to 10 s of silence.
func TestForeignLoad(t *testing.T) {
	at := time.Unix(1000, 0)
	var l load
	see := func(counted, before, after, want int) {
		t.Helper()
		at = at.Add(time.Second)
		l.observe(at, counted, before, after)
		if got := l.foreign(at); got != want {
			t.Errorf("%d counted beside %d and %d of our own: %d foreign, want %d", counted, before, after, got, want)
		}
	}
	see(20, 10, 10, 0) // one scrape may be wrong
	see(20, 10, 10, 0)
	see(20, 10, 10, 10)
	see(21, 10, 4, 10) // the least of 10, 10 and 17
	see(30, 10, 10, 10)
	see(12, 10, 10, 2) // at once
	see(5, 10, 10, 0)  // the engine has not seen all of ours yet
	see(17, 10, 10, 0)
	see(17, 10, 10, 0)
	see(17, 10, 10, 7)
	for _, after := range []struct {
		wait time.Duration
		want int
	}{{3 * time.Second, 7}, {4 * time.Second, 6}, {6 * time.Second, 4}, {9 * time.Second, 1}, {10 * time.Second, 0}, {time.Hour, 0}} {
		if got := l.foreign(at.Add(after.wait)); got != after.want {
			t.Errorf("after %v: %d, want %d", after.wait, got, after.want)
		}
	}
	if !l.known(at.Add(2999*time.Millisecond)) || l.known(at.Add(3*time.Second)) {
		t.Error("a reading counts for 3 s")
	}
	if l.over(at.Add(9999*time.Millisecond)) || !l.over(at.Add(10*time.Second)) || !new(load).over(at) {
		t.Error("nothing is left after 10 s")
	}
}
