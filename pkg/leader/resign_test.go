package leader

import (
	"testing"
	"testing/synctest"
	"time"
)

// A leader that resigns has a successor within a retry period, stops at once by its own measure, and does not come back.
func TestResign(t *testing.T) {
	for name, before := range map[string]func(*client){
		"at once":              func(*client) {},
		"while a request is":   func(c *client) { c.slow = time.Second },
		"an answer is lost":    func(c *client) { c.lost = 1 },
		"two answers are lost": func(c *client) { c.lost = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer()
				a, b := s.leaderAndFollower(t)
				a.set(before)
				time.Sleep(1500 * time.Millisecond)
				resigned := time.Now()
				given, succeeded := a.elector.Resign()
				select {
				case <-given:
				case <-time.After(3 * time.Second):
					t.Error("the Lease is not given up within 3 s")
				}
				<-succeeded
				synctest.Wait()
				a.want(false, "after its resignation")
				b.want(true, "after the resignation")
				if took := b.changedAt().Sub(resigned); took > 5*time.Second {
					t.Errorf("the other one leads after %v", took)
				}
				if gap := b.changedAt().Sub(a.changedAt()); gap > 0 {
					t.Errorf("nobody led for %v", gap)
				}
				b.kill()
				time.Sleep(time.Minute)
				synctest.Wait()
				a.want(false, "after the other one was killed: it has resigned")
			})
		})
	}
}

// A stopping follower does not affect the leader.
func TestFollowerResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		a, b := s.leaderAndFollower(t)
		_, over := b.elector.Resign()
		<-over // at once: it does not lead
		time.Sleep(time.Minute)
		synctest.Wait()
		a.want(true, "after the follower resigned")
		if a.changes() != 1 {
			t.Errorf("the leadership changed %d times", a.changes())
		}
	})
}

// If the leader has just made the Lease again, and the answer was lost, it gives up this Lease as well.
func TestResignWhatWasWrittenUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		a := s.candidate(t, anna)
		synctest.Wait()
		s.remove(theLease)
		a.set(func(c *client) { c.lost = 2 }) // of both attempts
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if h := s.holder(theLease); h != anna.String() {
			t.Fatalf("the Lease is held by %q", h)
		}
		given, _ := a.elector.Resign()
		<-given
		if h := s.holder(theLease); h != "" {
			t.Errorf("the Lease is still held by %q", h)
		}
	})
}

// While the apiserver is away, a resigned leader can have no successor: it leads on as long as its process lets it, and
// gives up the Lease when the apiserver is back.
func TestResignInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		a := s.candidate(t, anna)
		synctest.Wait()
		a.set(func(c *client) { c.hang = true })
		time.Sleep(4 * time.Second) // a request hangs, and goes on to
		synctest.Wait()
		given, succeeded := a.elector.Resign()
		select {
		case <-given:
			t.Error("the Lease is given up without an apiserver")
		case <-succeeded:
			t.Error("there is a successor without an apiserver")
		case <-time.After(3 * time.Second):
		}
		a.want(true, "while nobody can succeed it")
		a.set(func(c *client) { c.hang = false })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if h := s.holder(theLease); h != "" {
			t.Errorf("when the apiserver is back, the Lease is still held by %q", h)
		}
	})
}

// A leader that resigns follows a successor of an earlier version too, as in a rollback, though it would relieve that one
// if it stayed.
func TestEarlierVersionSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		here := anna
		here.Address = "10.0.0.1"
		a := s.candidate(t, here)
		synctest.Wait()
		old := s.candidate(t, bert)
		time.Sleep(time.Minute)
		synctest.Wait()
		a.want(true, "beside an earlier version")
		_, succeeded := a.elector.Resign()
		select {
		case <-succeeded:
		case <-time.After(2 * DefaultConfig().RetryPeriod):
			t.Error("it does not see its successor")
		}
		synctest.Wait()
		old.want(true, "after the resignation")
		a.want(false, "after the resignation")
	})
}
