package fairqueue

import (
	"fmt"
	"slices"
	"testing"
)

// The first request awaiting room in a lane is of the class whose turn it is; with a starvation threshold it is the
// oldest of all. If no request awaits room in a lane, no class is visited.
func TestAwaitingByTurn(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Shared, 1000, 1000
		cfg.Classes = manyClasses(MaxClasses, 100)
		cfg.Tiers = []TierConfig{{Name: "high", QueueSize: -1}, {Name: "low", QueueSize: -1}}
		if guarded {
			cfg.Tiers[1].StarvationThreshold = 1
		}
		q := queue(t, cfg)
		var all []*Request
		for i := range MaxClasses {
			class := fmt.Sprint((i + MaxClasses/2) % MaxClasses)
			for _, lane := range []Lane{"", "other"} {
				r := &Request{Flow: class, Tier: 1, Path: &Path{Class: class}, Cost: 1, Lane: lane}
				mustPush(t, q, r)
				if lane == "" {
					q.ParkFlow(r)
					q.AwaitRoom(r)
					all = append(all, r)
				}
			}
		}
		awaiting := func(lane Lane, but ...*Request) []*Request {
			return q.Awaiting(lane, func(r *Request) bool { return !slices.Contains(but, r) }, nil)
		}
		// The ring begins with class 0, which came in the middle; the first to come was of the class in the middle.
		turn, oldest := all[MaxClasses/2], all[0]
		want, then := []*Request{turn}, []*Request{all[MaxClasses/2+1]}
		if guarded {
			want, then = append(want, oldest), append(then, all[1])
		}
		if got := awaiting(""); !slices.Equal(got, want) {
			t.Errorf("guarded %t: %v, want %v", guarded, got, want)
		}
		if got := awaiting("", turn, oldest); !slices.Equal(got, then) {
			t.Errorf("guarded %t: %v, want %v when the first ones could not", guarded, got, then)
		}
		visits := func() (n uint64) {
			for _, t := range q.tiers {
				n += t.visits
			}
			return n
		}
		was := visits()
		if got := awaiting("other"); got != nil || visits() != was {
			t.Errorf("guarded %t: %v, %d classes visited in a lane where nobody awaits", guarded, got, visits()-was)
		}
		for i, r := range all {
			if !q.Awaits("") {
				t.Fatalf("guarded %t: nobody awaits of %d", guarded, len(all)-i)
			}
			if i%2 == 0 {
				q.Remove(r)
			} else {
				q.UnparkFlow(r.Tier, r.Flow)
			}
		}
		if was = visits(); q.Awaits("") || awaiting("") != nil || visits() != was {
			t.Errorf("guarded %t: %d classes visited when nobody awaits any more", guarded, visits()-was)
		}
	}
}

// A lane with many parked requests that awaited room leaves no large structures behind.
func TestParkedLeaveNoLargeStructures(t *testing.T) {
	for _, awaits := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Shared, 1000, 1000
		cfg.Tiers = []TierConfig{{Name: "high", QueueSize: -1}, {Name: "low", QueueSize: -1, StarvationThreshold: 1}}
		q := queue(t, cfg)
		var all []*Request
		for i := range 1000 {
			r := &Request{Flow: fmt.Sprint(i), Tier: 1, Cost: 1}
			mustPush(t, q, r)
			q.ParkFlow(r)
			if awaits {
				q.AwaitRoom(r)
			}
			all = append(all, r)
		}
		for _, r := range all {
			q.Remove(r)
		}
		for _, l := range q.tiers[1].classes[0].freeLanes {
			if n := cap(l.parked); n > 64 || !l.rooms.Small() || !l.roomAges.Small() {
				t.Errorf("awaits %t: a lane without waiters keeps room for %d parked, or more awaiting room", awaits, n)
			}
		}
	}
}

// A lane with only parked flows still reports a waiting request.
func TestInLaneOfParkedFlows(t *testing.T) {
	q := queue(t, DefaultConfig())
	r := &Request{Flow: "a", Cost: 1, Lane: "l"}
	mustPush(t, q, r)
	q.ParkFlow(r)
	if got := q.InLane("l", nil); !slices.Equal(got, []*Request{r}) {
		t.Errorf("%v wait in the lane, want %v", got, r)
	}
}

// Only a popped request can be requeued: not a waiting one, and not one that never arrived.
func TestRequeueOfAnUnpoppedRequestPanics(t *testing.T) {
	q := queue(t, DefaultConfig())
	waiting := &Request{Flow: "a", Cost: 1}
	mustPush(t, q, waiting)
	for what, r := range map[string]*Request{"that waits": waiting, "that never came": {Flow: "b", Cost: 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a request %s was requeued", what)
				}
			}()
			q.Requeue(r)
		}()
	}
	if q.Len() != 1 {
		t.Errorf("%d requests wait, want 1", q.Len())
	}
}
