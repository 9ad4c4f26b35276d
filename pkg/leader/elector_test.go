package leader

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
)

const theLease = "pool-weir"

// candidate is a replica that takes part in an election.
type candidate struct {
	*client
	t       *testing.T
	me      Identity
	elector *Elector
	kill    context.CancelFunc
	ended   chan struct{}

	mu     sync.Mutex
	leads  bool
	at     time.Time // when that last changed
	times  int       // how often it changed
	failed int
}

// candidate starts one.
func (s *apiserver) candidate(t *testing.T, me Identity) *candidate {
	t.Helper()
	return s.candidateWith(t, me, DefaultConfig())
}

func (s *apiserver) candidateWith(t *testing.T, me Identity, config Config) *candidate {
	t.Helper()
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	c := &candidate{client: s.client(), t: t, me: me, ended: make(chan struct{})}
	c.elector = NewElector(config, theLease, me, c.client, func(leads bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leads, c.at = leads, time.Now()
		c.times++
	}, func() { c.mu.Lock(); c.failed++; c.mu.Unlock() }, logr.Discard())
	ctx, kill := context.WithCancel(t.Context())
	c.kill = func() { kill(); <-c.ended }
	go func() {
		defer close(c.ended)
		if err := c.elector.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(c.kill)
	return c
}

// changedAt returns when its leadership last changed.
func (c *candidate) changedAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *candidate) failures() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// leaderAndFollower starts anna, the leader, and bert, a follower for a minute.
func (s *apiserver) leaderAndFollower(t *testing.T) (leader, follower *candidate) {
	t.Helper()
	leader = s.candidate(t, anna)
	synctest.Wait()
	follower = s.candidate(t, bert)
	time.Sleep(time.Minute)
	return leader, follower
}

// want checks whether it leads.
func (c *candidate) want(leads bool, when string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leads != leads {
		c.t.Errorf("%s: %s leads: %t, want %t", when, c.me.Pod, c.leads, leads)
	}
}

func (c *candidate) changes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.times
}

var (
	anna  = Identity{Pod: "anna", UID: "u1", Boot: "b1"}
	bert  = Identity{Pod: "bert", UID: "u2", Boot: "b2"}
	clara = Identity{Pod: "clara", UID: "u3", Boot: "b3"}
)

var errAway = errors.New("connection refused")

// The first replica leads and goes on leading; the other one follows. After a SIGKILL of the leader the follower leads
// within the Lease's duration and one retry period, and not before the duration is over.
func TestLeaderKilled(t *testing.T) {
	for range 20 { // the moments within a retry period are random
		synctest.Test(t, func(t *testing.T) {
			s := newAPIServer()
			a := s.candidate(t, anna)
			synctest.Wait()
			a.want(true, "alone")
			b := s.candidate(t, bert)
			time.Sleep(time.Hour)
			synctest.Wait()
			a.want(true, "after an hour")
			b.want(false, "after an hour")
			renewed, _ := s.get(theLease)
			a.kill()
			killed := time.Now()
			time.Sleep(17 * time.Second)
			synctest.Wait()
			b.want(true, "17 s after SIGKILL")
			if took := b.changedAt().Sub(killed); took < 13*time.Second {
				t.Errorf("took the Lease after %v", took)
			}
			if b.changedAt().Sub(renewed.Spec.RenewTime.Time) < 15*time.Second {
				t.Error("took the Lease before it was over")
			}
		})
	}
}

// A leader that cannot reach the apiserver leads on while no other replica does. If the other one can reach it, it
// takes the Lease, and the first follows as soon as it reads that.
func TestOutage(t *testing.T) {
	for name, broken := range map[string]func(*client){
		"refused": func(c *client) { c.away = errAway },
		"hangs":   func(c *client) { c.hang = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer()
				a, b := s.leaderAndFollower(t)
				healthy := func(c *client) { c.away, c.hang = nil, false }
				a.set(broken)
				b.set(broken)
				time.Sleep(time.Hour)
				synctest.Wait()
				a.want(true, "an hour into the outage")
				b.want(false, "an hour into the outage")
				a.set(healthy)
				time.Sleep(8 * time.Second)
				b.set(healthy)
				time.Sleep(time.Minute)
				synctest.Wait()
				a.want(true, "after the outage")
				b.want(false, "after the outage")
				if a.changes() != 1 || b.changes() != 0 {
					t.Errorf("the leadership changed: %d and %d times", a.changes(), b.changes())
				}
				if a.failures() == 0 {
					t.Error("no failure is counted")
				}

				a.set(broken) // only this one
				time.Sleep(30 * time.Second)
				synctest.Wait()
				b.want(true, "the leader is cut off")
				a.want(true, "cut off") // it cannot know
				a.set(healthy)
				time.Sleep(8 * time.Second)
				synctest.Wait()
				a.want(false, "back again")
				b.want(true, "the other is back again")
			})
		})
	}
}

// A leader of an earlier version, which does not publish itself, is relieved as soon as a replica exists that does; the
// converse never happens.
func TestEarlierVersionIsRelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		old := s.candidate(t, anna)
		synctest.Wait()
		old.want(true, "alone")
		next := bert
		next.Address = "10.0.0.2"
		b := s.candidate(t, next)
		synctest.Wait()
		b.want(true, "at once")
		time.Sleep(DefaultConfig().RetryPeriod)
		synctest.Wait()
		old.want(false, "after a retry period")
		third := s.candidate(t, clara)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		b.want(true, "beside earlier versions")
		old.want(false, "beside it")
		third.want(false, "beside it")
	})
}

// Replicas started together do not stay in phase: each looks a little early, at random.
func TestLooksAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		s.candidate(t, anna)
		synctest.Wait()
		for i := range 4 {
			s.candidate(t, Identity{Pod: "p" + string(rune('0'+i)), UID: "u", Boot: "b"})
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		seen := 0
		for range 200 { // of 2 s
			before := s.called("get")
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if s.called("get") > before {
				seen++
			}
		}
		if seen < 2 {
			t.Errorf("four followers look at %d moments in a retry period", seen)
		}
	})
}

// If several start at the same moment, or see a Lease end at the same moment, one of them leads.
func TestOneOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		var all []*candidate
		for i := range 8 {
			all = append(all, s.candidate(t, Identity{Pod: "p" + string(rune('0'+i)), UID: "u", Boot: "b"}))
		}
		leaders := func() (l []*candidate) {
			synctest.Wait()
			for _, c := range all {
				c.mu.Lock()
				if c.leads {
					l = append(l, c)
				}
				c.mu.Unlock()
			}
			return l
		}
		for range 7 {
			l := leaders()
			if len(l) != 1 {
				t.Fatalf("%d leaders", len(l))
			}
			l[0].kill()
			all = slices.DeleteFunc(all, func(c *candidate) bool { return c == l[0] })
			time.Sleep(17 * time.Second)
		}
	})
}

// A container restarted after a crash of the leader has its Lease back at once: no other process runs in its pod. A pod
// with the same name and another UID is a different replica.
func TestRestartedContainer(t *testing.T) {
	for uid, want := range map[string]bool{"u1": true, "another": false, "": false} {
		synctest.Test(t, func(t *testing.T) {
			s := newAPIServer()
			a, b := s.leaderAndFollower(t)
			a.kill()
			again := s.candidate(t, Identity{Pod: "anna", UID: uid, Boot: "b9"})
			time.Sleep(time.Second)
			synctest.Wait()
			again.want(want, "restarted with the UID "+uid)
			b.want(false, "a second later")
		})
	}
}

// Others' changes of the Lease change the leader only if they set another holder, or none.
func TestEditedLease(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, test := range map[string]struct {
		edit  func(*coordinationv1.Lease)
		leads bool          // anna does all the time
		until time.Duration // when one of the two leads again at the latest
	}{
		"labelled":  {func(l *coordinationv1.Lease) { l.Labels = map[string]string{"a": "b"} }, true, 0},
		"no holder": {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }, false, 3 * time.Second},
		"nothing":   {func(l *coordinationv1.Lease) { l.Spec = coordinationv1.LeaseSpec{} }, false, 3 * time.Second},
		"absurd numbers": {func(l *coordinationv1.Lease) {
			l.Spec.LeaseDurationSeconds, l.Spec.LeaseTransitions = new(int32(1<<31-1)), new(int32(1<<31-1))
		}, true, 0},
		"the follower": {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = text(bert.String()) }, false, 3 * time.Second},
		"a stranger":   {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = text("kubectl") }, false, 18 * time.Second},
		"a stranger for ever": {func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = text("x"), new(int32(1<<31-1))
		}, false, 303 * time.Second},
		"a short stranger": {func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = text("x_y"), new(int32(1))
		}, false, 4 * time.Second},
		"a stranger, no time": {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = text("__"), nil }, false, 18 * time.Second},
		"half of us":          {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = text("anna_u9_b1") }, false, 18 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer()
				a, b := s.leaderAndFollower(t)
				s.edit(t, theLease, test.edit)
				edited := time.Now()
				time.Sleep(2500 * time.Millisecond)
				synctest.Wait()
				if test.leads {
					a.want(true, "after the edit")
					b.want(false, "after the edit")
					if a.changes() != 1 {
						t.Errorf("the leadership changed %d times", a.changes())
					}
					return
				}
				if h := s.holder(theLease); h != anna.String() && h != "" && a.changes() < 2 {
					t.Errorf("%q holds the Lease, and the leader did not stop", h)
				}
				for {
					synctest.Wait()
					if h := s.holder(theLease); h == anna.String() || h == bert.String() {
						break
					}
					if time.Since(edited) > test.until {
						t.Fatalf("nobody leads %v after the edit", time.Since(edited))
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		})
	}
}

// A deleted Lease is made again by its holder, which leads all the time; no other replica uses the moment. If the
// holder is dead, another replica makes it when the holder's time is over.
func TestDeletedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		a := s.candidate(t, anna)
		synctest.Wait()
		b, c := s.candidate(t, bert), s.candidate(t, clara)
		time.Sleep(time.Minute)
		for range 50 {
			s.remove(theLease)
			time.Sleep(2500 * time.Millisecond)
		}
		synctest.Wait()
		a.want(true, "after 50 deletions")
		if a.changes() != 1 || b.changes()+c.changes() != 0 {
			t.Errorf("the leadership changed: %d, %d, %d times", a.changes(), b.changes(), c.changes())
		}
		time.Sleep(10 * time.Second) // so that the others have seen a version: their tries may have found none
		a.kill()
		s.remove(theLease)
		time.Sleep(10 * time.Second) // the versions that the others saw last are up to two retry periods old
		synctest.Wait()
		b.want(false, "10 s after the deletion")
		c.want(false, "10 s after the deletion")
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if b.changes()+c.changes() != 1 {
			t.Errorf("18 s after the deletion, %d took the Lease", b.changes()+c.changes())
		}
	})
}

// A Lease with another duration is left to its holder for that duration.
func TestTheHoldersDurationCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		long := DefaultConfig()
		long.LeaseDuration, long.RetryPeriod = 60*time.Second, 20*time.Second
		a := s.candidateWith(t, anna, long)
		synctest.Wait()
		b := s.candidate(t, bert)
		time.Sleep(time.Hour)
		synctest.Wait()
		a.want(true, "after an hour")
		b.want(false, "after an hour")
		if a.changes() != 1 {
			t.Errorf("the leadership changed %d times", a.changes())
		}
	})
}
