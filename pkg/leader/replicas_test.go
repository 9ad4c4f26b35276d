package leader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// teller is a replica that reports its requests in flight.
type teller struct {
	*client
	t        *testing.T
	replicas *Replicas
	kill     context.CancelFunc // SIGKILL: without a last record
	end      func()

	mu       sync.Mutex
	inFlight map[string]int
	changed  int
	synced   bool
	told     bool // Changed was called before synced
	failed   int
}

// tell starts one.
func (s *apiserver) tell(t *testing.T, me Identity, inFlight map[string]int) *teller {
	t.Helper()
	return s.tellThrough(t, s.client(), me, inFlight)
}

// tellThrough starts one with a connection.
func (s *apiserver) tellThrough(t *testing.T, c *client, me Identity, inFlight map[string]int) *teller {
	t.Helper()
	r := &teller{client: c, t: t, inFlight: inFlight}
	r.replicas = NewReplicas(DefaultConfig(), me, "pool", r.client, Part{
		InFlight: func() InFlight {
			r.mu.Lock()
			defer r.mu.Unlock()
			f := InFlight{ByEndpoint: maps.Clone(r.inFlight)}
			for _, n := range f.ByEndpoint {
				f.Total += n
			}
			return f
		},
		Changed: func() { r.mu.Lock(); r.changed++; r.mu.Unlock() },
		Failed:  func() { r.mu.Lock(); r.failed++; r.mu.Unlock() },
	}, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.replicas.Run(ctx, func() { r.mu.Lock(); r.synced, r.told = true, r.changed > 0; r.mu.Unlock() }); err != nil {
			t.Error(err)
		}
	}()
	r.end = func() { cancel(); <-ended }
	r.kill = func() {
		r.set(func(c *client) { c.away = errAway })
		r.end()
	}
	t.Cleanup(r.end)
	return r
}

func (r *teller) isSynced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.synced
}

// wasTold reports whether it was told of a change before it was synced.
func (r *teller) wasTold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

func (r *teller) failures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *teller) has(inFlight map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight = inFlight
}

// stock returns its foreign stock at endpoints.
func (r *teller) stock(keys ...string) []int {
	held := r.replicas.Stock(time.Now(), func() []Endpoint {
		endpoints := make([]Endpoint, len(keys))
		for i, key := range keys {
			endpoints[i] = Endpoint{Key: key, Bound: 1}
		}
		return endpoints
	})
	got := make([]int, len(keys))
	for i, h := range held {
		got[i] = h.Requests
	}
	return got
}

// sees checks its foreign stock at the endpoints a and b.
func (r *teller) sees(a, b int, when string) {
	r.t.Helper()
	synctest.Wait()
	got := r.stock("a", "b")
	if got[0] != a || got[1] != b {
		r.t.Errorf("%s: sees %v, want %d and %d", when, got, a, b)
	}
}

// about is sees for a stock that falls while the test waits.
func (r *teller) about(low, high int, when string) {
	r.t.Helper()
	synctest.Wait()
	if got := r.stock("a"); got[0] < low || got[0] > high {
		r.t.Errorf("%s: sees %d, want %d to %d", when, got[0], low, high)
	}
}

// Replicas know each other's work within two retry periods. After a kill the last record falls to 0 over the window; a
// draining replica has reported the end of its work.
func TestReplicasTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		a := s.tell(t, anna, map[string]int{"a": 60})
		b := s.tell(t, bert, nil)
		time.Sleep(4 * time.Second)
		b.about(55, 60, "after 4 s")
		a.sees(0, 0, "after 4 s")
		a.has(map[string]int{"a": 3, "b": 5})
		b.has(map[string]int{"b": 2})
		time.Sleep(4 * time.Second)
		b.sees(3, 5, "after 8 s")
		a.sees(0, 2, "after 8 s")
		a.has(map[string]int{"a": 60})
		time.Sleep(time.Hour)
		b.about(55, 60, "after an hour")

		a.kill()
		time.Sleep(30 * time.Second)
		b.about(26, 32, "30 s after SIGKILL")
		time.Sleep(32 * time.Second)
		b.sees(0, 0, "62 s after SIGKILL")

		c := s.tell(t, clara, map[string]int{"a": 7})
		time.Sleep(4 * time.Second)
		b.sees(7, 0, "a new one has work")
		c.replicas.Drain()
		c.has(map[string]int{"a": 1})
		c.end()
		time.Sleep(2 * time.Second)
		b.sees(1, 0, "it ended with one request in flight")
		if l, err := s.get("weir-clara"); err != nil || !strings.Contains(l.Annotations[Annotation], `"draining":true`) {
			t.Errorf("the last record does not say so: %v, %v", l.Annotations, err)
		}
	})
}

// A container that is restarted counts what its earlier processes left behind, for as long as the others do; also the
// third one, and also by an apiserver whose clock is far from the replicas'.
func TestRestartedReplicas(t *testing.T) {
	for _, skew := range []time.Duration{0, time.Hour, -25 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newAPIServer()
			s.skew = skew
			first := s.tell(t, Identity{Pod: "anna", UID: "u1", Boot: "first"}, map[string]int{"a": 60})
			other := s.tell(t, bert, nil)
			time.Sleep(4 * time.Second)
			first.kill()
			second := s.tell(t, Identity{Pod: "anna", UID: "u1", Boot: "second"}, map[string]int{"b": 30})
			time.Sleep(2 * time.Second)
			second.about(54, 60, "the second process")
			other.about(54, 60, "the other replica")
			time.Sleep(20 * time.Second)
			second.kill()
			third := s.tell(t, Identity{Pod: "anna", UID: "u1", Boot: "third"}, nil)
			late := s.tell(t, clara, nil)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			for _, r := range []*teller{third, other, late} {
				got := r.stock("a", "b")
				if got[0] < 32 || got[0] > 37 || got[1] < 26 || got[1] > 30 { // 24 to 26 s, and 2 to 4 s old
					t.Errorf("with an apiserver's clock of %v: %v", skew, got)
				}
			}
			third.about(32, 37, "the third process")
		})
	}
}

// A process that starts long after a kill of another counts none of its requests.
func TestYesterdaysRecord(t *testing.T) {
	for _, skew := range []time.Duration{0, 25 * time.Hour, -25 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newAPIServer()
			s.skew = skew
			a := s.tell(t, anna, map[string]int{"a": 60})
			time.Sleep(4 * time.Second)
			a.kill()
			time.Sleep(5 * time.Minute)
			b := s.tell(t, bert, nil)
			time.Sleep(time.Second)
			b.sees(0, 0, "five minutes later")
		})
	}
}

// A replica is not synced before it has read the others' records and written one of its own; and an earlier record of
// its own is not replaced unread.
func TestSynced(t *testing.T) {
	forbidden := apierrors.NewForbidden(leaseResource, "", errors.New("no"))
	for verb, broken := range map[string]func(*client){
		"all":    func(c *client) { c.away = forbidden },
		"hangs":  func(c *client) { c.hang = true },
		"list":   func(c *client) { c.forbidden = "list" },
		"update": func(c *client) { c.forbidden = "update" },
	} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer()
				first := s.tell(t, Identity{Pod: "anna", UID: "u1", Boot: "first"}, map[string]int{"a": 60})
				synctest.Wait()
				if !first.isSynced() || !first.wasTold() {
					t.Errorf("alone, it is synced at once: %t, and its reader was told: %t", first.isSynced(), first.wasTold())
				}
				first.kill()
				c := s.client()
				broken(c)
				second := s.tellThrough(t, c, Identity{Pod: "anna", UID: "u1", Boot: "second"}, nil)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if second.isSynced() || second.failures() == 0 {
					t.Errorf("synced: %t, %d failures counted", second.isSynced(), second.failures())
				}
				c.set(func(c *client) { c.away, c.hang, c.forbidden = nil, false, "" })
				time.Sleep(8 * time.Second)
				synctest.Wait()
				if !second.isSynced() {
					t.Error("it is not synced when it could be")
				}
				second.about(30, 42, "20 to 28 s after SIGKILL")
			})
		})
	}
}

// The first record of a process has what the process before it left behind: whoever starts in that moment knows of it.
// The earlier record is not replaced unread, also if it cannot be read at first.
func TestFirstRecordHandsOn(t *testing.T) {
	for _, failures := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			s := newAPIServer()
			first := s.tell(t, Identity{Pod: "anna", UID: "u1", Boot: "first"}, map[string]int{"a": 60})
			synctest.Wait()
			first.kill()
			c := s.client()
			c.fails = map[string]int{"list": failures}
			second := s.tellThrough(t, c, Identity{Pod: "anna", UID: "u1", Boot: "second"}, map[string]int{"b": 1})
			for wait := 0; wait < 1000 && !second.isSynced(); wait++ {
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
			}
			l, err := s.get("weir-anna")
			if err != nil {
				t.Fatal(err)
			}
			r, err := decode(l.Annotations[Annotation])
			if err != nil {
				t.Fatal(err)
			}
			if r.Boot != "second" || len(r.Earlier) != 1 || r.Earlier[0].Boot != "first" || r.Earlier[0].Total != 60 {
				t.Errorf("after %d failures the first record is %+v", failures, r)
			}
		})
	}
}

// A Lease that others edit, delete or strip of its label is put right; their labels and annotations stay.
func TestEditedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		a := s.tell(t, anna, map[string]int{"a": 6})
		b := s.tell(t, bert, nil)
		time.Sleep(4 * time.Second)
		for what, do := range map[string]func(){
			"deleted":  func() { s.remove("weir-anna") },
			"no label": func() { s.edit(t, "weir-anna", func(l *coordinationv1.Lease) { l.Labels = nil }) },
			"labelled": func() {
				s.edit(t, "weir-anna", func(l *coordinationv1.Lease) { l.Labels["team"] = "x"; l.Annotations["y"] = "z" })
			},
			"garbage": func() {
				s.edit(t, "weir-anna", func(l *coordinationv1.Lease) { l.Annotations[Annotation] = "{" })
			},
			"no annotations": func() { s.edit(t, "weir-anna", func(l *coordinationv1.Lease) { l.Annotations = nil }) },
		} {
			do()
			time.Sleep(time.Second)
			b.about(6, 6, what)
			time.Sleep(4 * time.Second)
			a.has(map[string]int{"a": 9})
			time.Sleep(5 * time.Second)
			b.about(9, 9, what+", and newer work")
			a.has(map[string]int{"a": 6})
			time.Sleep(5 * time.Second)
		}
		s.edit(t, "weir-anna", func(l *coordinationv1.Lease) { l.Labels["team"] = "x"; l.Annotations = map[string]string{"y": "z"} })
		time.Sleep(5 * time.Second)
		l, _ := s.get("weir-anna")
		if l.Labels["team"] != "x" || l.Annotations["y"] != "z" || l.Labels[PoolLabel] != "pool" {
			t.Errorf("labels %v, annotations %v", l.Labels, slices.Sorted(maps.Keys(l.Annotations)))
		}
	})
}

// Leases that are not renewed are deleted after a while: only those of this pool, and none that is renewed, however
// rarely.
func TestForgottenLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		for i := range 3 {
			old := s.tell(t, Identity{Pod: fmt.Sprint("old-", i), UID: "u", Boot: fmt.Sprint("old", i)}, map[string]int{"a": 1})
			synctest.Wait()
			old.kill()
		}
		elsewhere := lease("weir-elsewhere", 0, "")
		elsewhere.Labels = map[string]string{PoolLabel: "another"}
		if _, err := s.create(&elsewhere); err != nil {
			t.Fatal(err)
		}
		s.tell(t, anna, nil)
		time.Sleep(14 * time.Minute)
		s.tell(t, bert, nil)
		synctest.Wait()
		if got := s.names(); got != "weir-anna weir-bert weir-elsewhere weir-old-0 weir-old-1 weir-old-2" {
			t.Errorf("after 14 minutes: %s", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := s.names(); got != "weir-anna weir-bert weir-elsewhere" {
			t.Errorf("after 16 minutes: %s", got)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := s.names(); got != "weir-anna weir-bert weir-elsewhere" {
			t.Errorf("a day later: %s", got)
		}
	})
}

// A Lease that another replica has deleted first is no failure; one that may not be deleted is tried once in a Lease's
// duration.
func TestForgottenLeasesAreDeletedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		old := s.tell(t, Identity{Pod: "old", UID: "u", Boot: "old"}, map[string]int{"a": 1})
		synctest.Wait()
		old.kill()
		c := s.client()
		c.forbidden = "delete"
		a := s.tellThrough(t, c, anna, nil)
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		before := a.failures()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := a.failures() - before; n < 3 || n > 5 {
			t.Errorf("%d attempts in a minute", n)
		}
		before = a.failures()
		a.set(func(c *client) { c.forbidden, c.quicker = "", true })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.names(); got != "weir-anna" {
			t.Errorf("left: %s", got)
		}
		if n := a.failures() - before; n != 0 {
			t.Errorf("%d failures", n)
		}
	})
}

// Only a few Leases are read, including the own one, however many claim to be replicas of the pool.
func TestManyLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		for i := range 1000 {
			l := lease(fmt.Sprintf("a-%04d", i), 0, record(fmt.Sprint("b", i), map[string]int{"a": 1}))
			l.Labels = map[string]string{PoolLabel: "pool"}
			if _, err := s.create(&l); err != nil {
				t.Fatal(err)
			}
		}
		first := s.tell(t, Identity{Pod: "anna", UID: "u1", Boot: "first"}, map[string]int{"b": 9})
		time.Sleep(3 * time.Second)
		first.about(maxReplicas-4, maxReplicas, "a thousand strangers")
		first.kill()
		second := s.tell(t, Identity{Pod: "anna", UID: "u1", Boot: "second"}, nil)
		time.Sleep(time.Second)
		second.sees(maxReplicas, 9, "the own earlier record")
	})
}

// An idle replica looks and does not write; a busy one writes once in a retry period.
func TestWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		a := s.tell(t, anna, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := s.called("update"); n < 35 || n > 42 {
			t.Errorf("%d writes in 10 minutes of idling, want one in each Lease's duration", n)
		}
		before := s.called("update")
		a.has(map[string]int{"a": 1})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := s.called("update") - before; n < 295 || n > 380 {
			t.Errorf("%d writes in 10 minutes of work, want one in each retry period", n)
		}
	})
}

// A record that says that nothing is in flight any more, and could not be written, is written in the next round; and one
// that says that its process drains at once, if nothing is in flight too.
func TestLastWorkIsToldSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		a := s.tell(t, anna, map[string]int{"a": 5})
		b := s.tell(t, bert, nil)
		time.Sleep(5 * time.Second)
		b.sees(5, 0, "at work")
		a.has(nil)
		a.set(func(c *client) { c.fails = map[string]int{"update": 1} })
		time.Sleep(6 * time.Second)
		b.sees(0, 0, "three retry periods after its last work")

		b.end() // only one of them writes
		time.Sleep(time.Minute)
		before := s.called("update")
		for wait := 0; wait < 200 && s.called("update") == before; wait++ { // until it has just written
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if l, _ := s.get("weir-anna"); l.Annotations[Annotation] == "" || strings.Contains(l.Annotations[Annotation], "draining") {
			t.Errorf("idle: %v", l.Annotations)
		}
		a.replicas.Drain()
		synctest.Wait()
		if l, err := s.get("weir-anna"); err != nil || !strings.Contains(l.Annotations[Annotation], `"draining":true`) {
			t.Errorf("idle, it begins to drain: %v, %v", l.Annotations, err)
		}
	})
}
