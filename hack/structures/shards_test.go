package structures

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/weir-epp/weir/internal/heap"
)

// shard is a heap with a lock. What others look at without it is its least key.
type shard struct {
	sync.Mutex
	flows four
	least atomic.Uint64
	_     [64]byte // no two in one cache line
}

func (s *shard) publish() {
	key := uint64(math.MaxInt64)
	if s.flows.Len() > 0 {
		key = s.flows.MinKey().Value
	}
	s.least.Store(key)
}

// sharded is a number of shards, among which flows are divided.
type sharded struct {
	shards []shard
	two    bool // the lesser of two that are drawn goes: a MultiQueue. Otherwise the least of all
}

func newSharded(shards int, two bool) *sharded {
	s := &sharded{shards: make([]shard, shards), two: two}
	for i := range s.shards {
		s.shards[i].publish()
	}
	return s
}

func (s *sharded) add(f *flow, number int) {
	f.of = &s.shards[number%len(s.shards)]
	f.of.flows.push(f)
	f.of.publish()
}

// serve lets the next flow go, which has more waiters: it gets the next key.
func (s *sharded) serve(next func(f *flow) heap.Key) *flow {
	for {
		best := s.choose()
		least := best.least.Load()
		best.Lock()
		f := best.flows.min()
		if f == nil || f.key.Value != least { // another one was faster
			best.Unlock()
			continue
		}
		best.flows.fix(f, next(f))
		best.publish()
		best.Unlock()
		return f
	}
}

func (s *sharded) choose() *shard {
	if s.two {
		a, b := &s.shards[rand.IntN(len(s.shards))], &s.shards[rand.IntN(len(s.shards))]
		if b.least.Load() < a.least.Load() {
			a = b
		}
		return a
	}
	best := &s.shards[0]
	for i := range s.shards {
		if s.shards[i].least.Load() < best.least.Load() {
			best = &s.shards[i]
		}
	}
	return best
}

// correct changes the key of a flow, as the true-up of a request does.
func (s *sharded) correct(f *flow, to func(f *flow) heap.Key) {
	f.of.Lock()
	f.of.flows.fix(f, to(f))
	f.of.publish()
	f.of.Unlock()
}
