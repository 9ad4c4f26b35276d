package datastore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// many returns n endpoints.
func many(n int) []scheduling.Endpoint {
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.0.%d.%d:80", i/250, i%250+1)
	}
	return at(addresses...)
}

// 2,000 endpoints that become ready one millisecond apart are one snapshot per 50 ms, not one per endpoint: the list
// with none ready, the first ready one, and 40 more.
func TestGainsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNew(t, DefaultConfig())
		const n = 500
		endpoints := many(n)
		for i := range endpoints {
			endpoints[i].Ready = false
		}
		s.Set(endpoints)
		pass(time.Second)
		begun := time.Now()
		var first, last time.Duration
		s.Subscribe(func(snap *scheduling.Snapshot) {
			if snap.Version() == 2 {
				first = time.Since(begun)
			}
			last = time.Since(begun)
		})
		for i := range endpoints {
			time.Sleep(time.Millisecond)
			endpoints[i].Ready = true
			s.Set(endpoints)
		}
		pass(gatherTime)
		if v := s.Current().Version(); v != 2+n/50 {
			t.Errorf("%d snapshots", v)
		}
		if first != time.Millisecond || last != (n+1)*time.Millisecond {
			t.Errorf("the first endpoint was published after %v, the last after %v", first, last)
		}
		for i := range s.Current().Len() {
			if !s.Current().At(i).Ready {
				t.Fatalf("endpoint %d is not ready", i)
			}
		}
	})
}

// A loss is published at once, together with everything delayed; then no timer is left.
func TestLossesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNew(t, DefaultConfig())
		s.Set(at("10.0.0.1:80"))
		wantSeen(t, s.Current(), "10.0.0.1:80") // the first change after a quiet time
		s.Set(at("10.0.0.1:80", "10.0.0.2:80"))
		pass(gatherTime - 1)
		wantSeen(t, s.Current(), "10.0.0.1:80")
		pass(1)
		wantSeen(t, s.Current(), "10.0.0.1:80", "10.0.0.2:80")

		s.Set(at("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"))
		wantSeen(t, s.Current(), "10.0.0.1:80", "10.0.0.2:80")
		s.Set(at("10.0.0.2:80", "10.0.0.3:80"))
		wantSeen(t, s.Current(), "10.0.0.2:80", "10.0.0.3:80")
		pass(time.Hour)
		if v := s.Current().Version(); v != 3 {
			t.Errorf("version %d", v)
		}

		// An endpoint that comes back counts as a gain.
		s.Set(at("10.0.0.3:80"))
		s.Set(at("10.0.0.2:80", "10.0.0.3:80"))
		wantSeen(t, s.Current(), "10.0.0.3:80")
		pass(gatherTime)
		wantSeen(t, s.Current(), "10.0.0.3:80", "10.0.0.2:80")

		// Any other change is not a gain, even together with one.
		models := at("10.0.0.2:80", "10.0.0.3:80")
		models[0].Models = []string{"a"}
		s.Set(at("10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80")) // after a quiet time
		s.Set(append(models, at("10.0.0.4:80", "10.0.0.5:80")...))
		wantSeen(t, s.Current(), "10.0.0.3:80", "10.0.0.2:80", "10.0.0.4:80", "10.0.0.5:80")
	})
}

// An endpoint that is still listed but no longer ready is a loss, and the first ready endpoint may be waited for:
// neither is delayed, however recent the last publication.
func TestReadinessThatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := func(s *Store) (n int) {
			for i := range s.Current().Len() {
				if s.Current().At(i).Ready {
					n++
				}
			}
			return n
		}
		s := mustNew(t, DefaultConfig())
		endpoints := at("10.0.0.1:80", "10.0.0.2:80")
		set := func(first, second bool) int {
			endpoints[0].Ready, endpoints[1].Ready = first, second
			s.Set(endpoints)
			return ready(s)
		}
		for _, step := range []struct {
			first, second bool
			want          int
		}{
			{false, false, 0}, {true, false, 1}, {true, true, 1}, {false, true, 1}, {false, false, 0}, {false, true, 1},
		} {
			if got := set(step.first, step.second); got != step.want {
				t.Errorf("%+v: %d ready", step, got)
			}
			pass(time.Millisecond)
		}
		if s.Current().At(0).Ready || !s.Current().At(1).Ready {
			t.Error("the wrong one is ready")
		}
	})
}

// A gain that is lost before it was published does not delay anything later.
func TestGainThatIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNew(t, DefaultConfig())
		s.Set(at("10.0.0.1:80"))
		s.Set(at("10.0.0.1:80", "10.0.0.2:80"))
		s.Set(at("10.0.0.1:80"))
		pass(time.Second)
		s.Set(at("10.0.0.1:80", "10.0.0.3:80"))
		s.Set(at("10.0.0.1:80", "10.0.0.3:80", "10.0.0.4:80"))
		pass(gatherTime)
		wantSeen(t, s.Current(), "10.0.0.1:80", "10.0.0.3:80", "10.0.0.4:80")
	})
}

// A store that has ended has no timer, and publishes at once.
func TestGatheringEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNew(t, DefaultConfig())
		s.Set(at("10.0.0.1:80"))
		s.Set(at("10.0.0.1:80", "10.0.0.2:80"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		wantSeen(t, s.Current(), "10.0.0.1:80") // the delayed change is dropped: there is no reader
		s.Set(at("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"))
		wantSeen(t, s.Current(), "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80")
	})
}
