package prefix

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// An endpoint loses its blocks when it leaves, is not ready, or another engine takes its ID; others keep theirs.
func TestEndpointsThatChange(t *testing.T) {
	for name, change := range map[string]func(*Endpoint){
		"not ready": func(e *Endpoint) { e.Ready = false }, "another key": func(e *Endpoint) { e.Key = "other" }, "gone": func(e *Endpoint) { e.ID = 9 },
	} {
		x, ids := newIndex(3, 0)
		p := blocks(1, 5, 1, 8)
		for _, id := range ids {
			x.put(p, id)
		}
		all, _ := pool(3, 0)
		change(&all[1])
		x.SetEndpoints(all)
		checkIndex(t, x)
		if r := x.Match(p, ids); r.Cached(1) != 0 || r.Cached(0) != 8*256 || r.Cached(2) != 8*256 {
			t.Errorf("%s: %+v", name, r)
		}
		x.SetEndpoints(nil)
		if size := x.Size(); size != (Size{}) {
			t.Errorf("%s: %+v in an empty pool", name, size)
		}
		x.put(p, 0) // a grant of before
		checkIndex(t, x)
	}
}

// An engine whose counters fall has restarted, so it has nothing; a page that cannot be read says nothing.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		then scheduling.Signals
		left bool
	}{
		{scheduling.Signals{Known: true, Produced: 501, Preemptions: 7}, true},
		{scheduling.Signals{Known: true, Produced: 499, Preemptions: 7}, false},
		{scheduling.Signals{Known: true}, false},
		{scheduling.Signals{}, true},
		{scheduling.Signals{Known: true, Produced: 900, Preemptions: 6}, false},
	} {
		x, ids := newIndex(2, 0)
		x.SetSignals(0, scheduling.Signals{Known: true, Produced: 500, Preemptions: 7})
		p := blocks(1, 5, 1, 8)
		x.put(p, 0)
		x.put(p, 1)
		x.SetSignals(0, c.then)
		if r := x.Match(p, ids); (r.Cached(0) > 0) != c.left || r.Cached(1) != 8*256 {
			t.Errorf("%+v: %+v", c.then, r)
		}
		x.put(p, 0)
		x.SetSignals(0, c.then)
		if r := x.Match(p, ids); r.Cached(0) == 0 {
			t.Errorf("%+v twice is no restart: %+v", c.then, r)
		}
		checkIndex(t, x)
	}
}

// An engine that says how large its cache is has a history of twice that, once it says something new; an engine that claims
// to have no end has no more than a part of all.
func TestSizeOfTheCache(t *testing.T) {
	x, ids := newIndex(20, 0)
	limit := func(id scheduling.EndpointID) int { return x.engines[id].limit }
	for i := range 100 {
		x.put(blocks(uint64(i)+1, 0, 1, 100), ids[0])
	}
	for _, c := range []struct {
		tokens int64
		limit  int
	}{{1_100_000, 7812}, {900_000, 7812}, {128_000, 1000}, {0, 1000}, {-5, 1000}, {141_000, 1000}, {256_000, 2000}, {1, 64}} {
		x.SetSignals(ids[0], scheduling.Signals{Known: true, CacheTokens: c.tokens})
		if limit(0) != c.limit || limit(1) != 7812 {
			t.Errorf("%d tokens: a limit of %d, and %d elsewhere, want %d", c.tokens, limit(0), limit(1), c.limit)
		}
		checkIndex(t, x)
	}
	x.SetSignals(ids[0], scheduling.Signals{Known: true, CacheTokens: 1 << 40})
	if limit(0) > DefaultConfig().MaxNodes/8 || limit(1) != 7812 {
		t.Errorf("limits of %d and %d", limit(0), limit(1))
	}
	all, _ := pool(20, 0)
	x.SetSignals(ids[3], scheduling.Signals{Known: true, CacheTokens: 128_000})
	x.SetEndpoints(all)
	if limit(3) != 1000 {
		t.Errorf("a new list of endpoints makes the limit %d", limit(3))
	}
	x.SetSignals(99, scheduling.Signals{Known: true, CacheTokens: 5})
}

// Endpoints come, leave, restart and say how large they are while requests are placed there.
func TestManyEndpointsLeaveWhileOthersAreAsked(t *testing.T) {
	x, ids := newIndex(40, 0)
	var asked sync.WaitGroup
	stop := make(chan struct{})
	for worker := range uint64(3) {
		asked.Go(func() {
			for i := uint64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				p := blocks(worker, 20, i%50, 60)
				p.Flow = worker
				r := x.Match(p, ids)
				placed := x.Place(p, &r, ids[i%40])
				if i%5 == 0 {
					x.TakeBack(placed)
				}
				x.Report(placed, 0)
			}
		})
	}
	for i := range 60 {
		all, _ := pool(40, 0)
		for k := range all {
			all[k].Ready = (i+k)%3 > 0
			if (i+k)%7 == 0 {
				all[k].Key = fmt.Sprint("new-", i)
			}
		}
		x.SetEndpoints(all)
		x.Clear(ids[i%40])
		x.SetSignals(ids[i%40], scheduling.Signals{Known: true, CacheTokens: int64(20_000 * (i + 1))})
	}
	close(stop)
	asked.Wait()
	checkIndex(t, x)
	x.SetEndpoints(nil)
	if size := x.Size(); size != (Size{}) {
		t.Errorf("%+v in an empty pool", size)
	}
}
