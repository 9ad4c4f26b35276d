package leader

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// voter is a replica in a simulation: the pure election, its own clock, and a connection that may be cut. A replica
// without an address is of an earlier version.
type voter struct {
	election
	clock  time.Duration // what its clock is ahead of the true one
	cut    bool
	unsure bool
	gone   bool // its process has ended

	// The state that the rules are checked with, in true time.
	version string    // of the Lease that it last read
	first   time.Time // when it first read that one
	held    time.Duration
}

// TestElectionSimulated runs replicas of two versions for hours, with wrong clocks, cut connections, kills,
// resignations, deletions and forgers at random, and checks the promises of the package comment in true time. A leader
// that resigns goes on until it reads its successor, and one of the earlier version is relieved by a replica of the
// later one.
func TestElectionSimulated(t *testing.T) {
	const duration, retry = 15 * time.Second, 2 * time.Second
	relieved, succeeded := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newAPIServer()
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		born := 0
		newVoter := func() *voter {
			born++
			me := Identity{Pod: fmt.Sprint("p", born), UID: fmt.Sprint("u", born), Boot: "b"}
			if r.IntN(2) == 0 {
				me.Address = fmt.Sprint("10.0.0.", born)
			}
			return &voter{
				election: election{me: me, name: theLease, duration: duration, pause: retry},
				clock:    time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour,
				unsure:   true,
			}
		}
		voters := []*voter{newVoter(), newVoter(), newVoter()}
		read := func(v *voter, l *coordinationv1.Lease) {
			led, other := v.leads, ""
			if l != nil {
				if l.ResourceVersion != v.version {
					v.version, v.first, v.held = l.ResourceVersion, now, durationOf(l, duration)
				}
				if h := holderOf(l); h != "" && h != v.me.String() {
					other = h
				}
			}
			v.saw(now.Add(v.clock), l)
			if led && !v.leads && other == "" {
				t.Fatalf("seed %d: %s stopped leading with nobody else in the Lease", seed, v.me.Pod)
			}
			relieves := !v.left && v.me.Address != "" && strings.Count(other, "_") == 2 // takes it again at once
			if v.leads && other != "" && !relieves {
				t.Fatalf("seed %d: %s leads, and %s holds the Lease", seed, v.me.Pod, other)
			}
		}
		// step does the same as Elector.act.
		step := func(v *voter) {
			if v.cut || v.gone {
				v.unsure = v.unsure || v.cut
				return
			}
			if v.left { // as Elector.awaitSuccessor
				if l, err := s.get(theLease); err == nil {
					read(v, l)
					if l := v.leave(); l != nil { // somebody was faster when it gave the Lease up
						_, _ = s.update(l)
					}
				}
				if v.gone = !v.leads; v.gone {
					succeeded++
				}
				return
			}
			if !v.leads || v.unsure {
				l, err := s.get(theLease)
				if err != nil {
					l = nil
				}
				v.unsure = false
				read(v, l)
			}
			write, at := v.proposal(now.Add(v.clock))
			if write == nil {
				if ahead := at.Sub(now.Add(v.clock)); ahead <= 0 || ahead > MaxLeaseDuration {
					t.Fatalf("seed %d: nothing to write, and again in %v", seed, ahead)
				}
				return
			}
			if old, err := s.get(theLease); err == nil && write.ResourceVersion == old.ResourceVersion {
				h := holderOf(old)
				early := h != "" && h != v.me.String() && now.Sub(v.first) < v.held
				switch earlier := strings.Count(h, "_") == 2; {
				case early && earlier && v.me.Address != "":
					relieved++
				case early:
					t.Fatalf("seed %d: %s takes the Lease of %s, which it has seen for %v of %v only", seed, v.me.Pod, h, now.Sub(v.first), v.held)
				}
			}
			put := s.update
			if write.ResourceVersion == "" {
				put = s.create
			}
			l, err := put(write)
			if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
				v.unsure = true
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			read(v, l)
		}
		quiet := time.Duration(0) // how long nothing has disturbed them
		for range 400 {
			now = now.Add(time.Duration(r.Int64N(int64(retry))))
			for _, i := range r.Perm(len(voters)) {
				step(voters[i])
			}
			switch v := voters[r.IntN(len(voters))]; r.IntN(60) {
			case 0:
				v.cut = !v.cut
			case 1: // killed, and another one starts
				v.gone = true
			case 2: // stops: it leads until it has a successor
				if !v.gone && !v.cut {
					if l := v.leave(); l != nil {
						_, _ = s.update(l)
					}
					v.gone = !v.leads
				}
			case 3:
				s.remove(theLease)
			case 4: // a forger
				if l, err := s.get(theLease); err == nil {
					name, seconds := "forger", int32(r.IntN(20)-5)
					l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &name, &seconds
					_, _ = s.update(l)
				}
			case 5:
				if l, err := s.get(theLease); err == nil {
					l.Spec = coordinationv1.LeaseSpec{}
					_, _ = s.update(l)
				}
			case 6: // everybody is well for a while
				for i := range voters {
					if voters[i].cut = false; voters[i].gone {
						voters[i] = newVoter()
					}
				}
				for quiet = 0; quiet < duration+20*time.Second; quiet += retry {
					now = now.Add(retry)
					for _, i := range r.Perm(len(voters)) {
						step(voters[i])
					}
				}
				candidates, leaders, later := 0, 0, 0
				published := false
				for _, v := range voters {
					if v.leads && !v.gone {
						leaders++
					}
					if v.gone || v.left {
						continue
					}
					candidates++
					if v.me.Address != "" {
						later++
						published = published || v.leads
					}
				}
				if candidates > 0 && leaders != 1 {
					t.Fatalf("seed %d: %d leaders after %v without a fault", seed, leaders, quiet)
				}
				if later > 0 && !published {
					t.Fatalf("seed %d: after %v without a fault a replica of the earlier version leads beside one of the later", seed, quiet)
				}
			}
		}
	}
	if relieved < 100 || succeeded < 100 {
		t.Errorf("%d leaders were relieved and %d saw their successor: too few to show anything", relieved, succeeded)
	}
}

// A holder that could not renew the Lease because the apiserver was away gets its whole time again: an outage changes
// no leader. A holder that has also gone loses the Lease after that time.
func TestAnOutageIsNotCounted(t *testing.T) {
	const duration, retry = 15 * time.Second, 2 * time.Second
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	holder, seconds := Identity{Pod: "p", UID: "u", Boot: "b"}.String(), int32(duration/time.Second)
	held := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds}}
	held.ResourceVersion = "1"
	e := election{me: Identity{Pod: "q", UID: "u", Boot: "b"}, name: theLease, duration: duration, pause: retry}
	for range 3 {
		e.saw(now, held)
		now = now.Add(retry)
	}
	now = now.Add(30 * time.Second)
	back := now
	for now.Sub(back) < duration {
		e.saw(now, held)
		if write, _ := e.proposal(now); write != nil {
			t.Fatalf("takes the Lease %v after the outage", now.Sub(back))
		}
		now = now.Add(retry)
	}
	e.saw(now, held)
	if write, _ := e.proposal(now); write == nil {
		t.Errorf("does not take the Lease %v after the outage", now.Sub(back))
	}
}

// A Lease with a new holder states since when, and the number of changes, whatever its content was, and no other
// component may choose its holder (Kubernetes' coordinated election). A renewed Lease states the same as before.
func TestWhatTheLeaseSays(t *testing.T) {
	now := epoch.Add(time.Hour)
	for before, want := range map[int32]int32{0: 1, 3: 4, -5: 1, math.MaxInt32: math.MaxInt32} {
		e := election{me: anna, name: theLease, duration: 15 * time.Second, pause: 2 * time.Second}
		stamp, nobody, chosen := metav1.NewMicroTime(epoch), "", coordinationv1.OldestEmulationVersion
		e.saw(now, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &nobody, LeaseTransitions: &before, AcquireTime: &stamp, Strategy: &chosen, PreferredHolder: &nobody,
		}})
		taken, _ := e.proposal(now)
		if s := taken.Spec; *s.HolderIdentity != anna.String() || *s.LeaseTransitions != want || !s.AcquireTime.Time.Equal(now) ||
			!s.RenewTime.Time.Equal(now) || *s.LeaseDurationSeconds != 15 || s.Strategy != nil || s.PreferredHolder != nil {
			t.Errorf("after %d transitions it is taken as %+v", before, s)
		}
		e.saw(now, taken)
		renewed, _ := e.proposal(now.Add(2 * time.Second))
		if s := renewed.Spec; *s.LeaseTransitions != want || !s.AcquireTime.Time.Equal(now) || !s.RenewTime.Time.Equal(now.Add(2*time.Second)) {
			t.Errorf("after %d transitions it is renewed as %+v", before, s)
		}
		e.leave()
		if e.saw(now, renewed); !e.leads {
			t.Error("it does not lead until another one does")
		}
		successor := renewed.DeepCopy()
		other := bert.String()
		successor.Spec.HolderIdentity = &other
		if e.saw(now, successor); e.leads {
			t.Error("it leads after another one does")
		}
		if e.saw(now, renewed); e.leads {
			t.Error("it leads again after it has left")
		}
	}
}

func TestIdentity(t *testing.T) {
	i := Identity{Pod: "weir-0", UID: "u", Boot: "b"}
	for holder, want := range map[string]bool{
		"weir-0_u_a": true, "weir-0_u_": true, i.String(): false, "weir-0_v_a": false, "weir-1_u_a": false, "weir-0": false,
		"": false, "weir-0_u_a_10.0.0.1": true, "_u_a": false,
	} {
		if got := i.precedes(holder); got != want {
			t.Errorf("%q: %t, want %t", holder, got, want)
		}
	}
	if nobody := (Identity{Pod: "weir-0", Boot: "b"}); nobody.precedes("weir-0__a") {
		t.Error("without a UID another pod of the name is taken for the own one")
	}
	here := Identity{Pod: "weir-0", UID: "u", Boot: "b", Address: "10.0.0.1"}
	for holder, want := range map[string]bool{"weir-1_v_c": true, "weir-1_v_c_10.0.0.2": false, "": false, "somebody": false, "a_b": false} {
		if got := here.relieves(holder); got != want || i.relieves(holder) {
			t.Errorf("%q is relieved: %t, want %t; by one that does not publish itself: %t", holder, got, want, i.relieves(holder))
		}
	}
	if a, b := NewIdentity("p", "u"), NewIdentity("p", "u"); a.Boot == b.Boot || a.Boot == "" {
		t.Errorf("boot IDs %q and %q", a.Boot, b.Boot)
	}
}
