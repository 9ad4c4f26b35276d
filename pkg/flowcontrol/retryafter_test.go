package flowcontrol

import (
	"testing"
	"time"
)

// 200 rejections in one burst get 200 different moments, spaced as the queue drains.
func TestBurstOfRejectionsIsSpreadAtTheDrainRate(t *testing.T) {
	var s schedule
	now := time.Now()
	for i := range 50 { // a release every 25 ms
		s.drained(now.Add(time.Duration(i) * 25 * time.Millisecond))
	}
	now = now.Add(2 * time.Second)
	seen := map[int64]bool{}
	var last time.Duration
	for i := range 200 {
		wait := s.place(now, 100)
		if i == 0 && wait != 2500*time.Millisecond {
			t.Errorf("the first place is after %v, want behind the 100 who wait", wait)
		}
		if i > 0 && wait-last != 25*time.Millisecond {
			t.Fatalf("place %d is %v after the one before", i, wait-last)
		}
		last = wait
		seen[wait.Milliseconds()] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d different moments", len(seen))
	}
}

func TestPlaces(t *testing.T) {
	now := time.Now()
	t.Run("without a sample 10 ms apart, not before 1 s", func(t *testing.T) {
		var s schedule
		for i := range 10 {
			if got, want := s.place(now, 3), time.Second+time.Duration(i)*10*time.Millisecond; got != want {
				t.Errorf("place %d after %v, want %v", i, got, want)
			}
		}
	})
	t.Run("at least 1 ms apart", func(t *testing.T) {
		var s schedule
		for i := range 100 {
			s.drained(now.Add(time.Duration(i) * time.Microsecond))
		}
		first := s.place(now, 0)
		if second := s.place(now, 0); second-first != time.Millisecond {
			t.Errorf("%v apart", second-first)
		}
	})
	t.Run("places are taken up again when their time has passed", func(t *testing.T) {
		var s schedule
		for range 100 {
			s.place(now, 0)
		}
		if wait := s.place(now.Add(time.Minute), 0); wait != time.Second {
			t.Errorf("%v", wait)
		}
	})
	t.Run("beyond 60 s spread over 60 to 90 s, each its own millisecond", func(t *testing.T) {
		var s schedule
		s.drained(now)
		s.drained(now.Add(time.Hour)) // one an hour
		s.place(now, 1_000_000_000)
		seen := map[int64]bool{}
		low, high := time.Hour, time.Duration(0)
		for range 1000 {
			wait := s.place(now, 1_000_000_000)
			low, high = min(low, wait), max(high, wait)
			seen[wait.Milliseconds()] = true
		}
		if low < 60*time.Second || high > 90*time.Second || high-low < 29*time.Second || len(seen) < 990 {
			t.Errorf("from %v to %v, %d different", low, high, len(seen))
		}
	})
	t.Run("preempted and draining: 1 to 1000 ms", func(t *testing.T) {
		var s schedule
		low, high := time.Hour, time.Duration(0)
		for range 1000 {
			wait := s.soon()
			low, high = min(low, wait), max(high, wait)
		}
		if low < time.Millisecond || high > time.Second || high-low < 900*time.Millisecond {
			t.Errorf("from %v to %v", low, high)
		}
	})
}
