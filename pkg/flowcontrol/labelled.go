package flowcontrol

import (
	"sync"
	"sync/atomic"
	"time"
)

// labelled maps label values to their metrics, for at most limit values; all others share one set. It is read for each
// request, so reads take no lock. When it is full, prune makes room, so that names that clients used once do not keep
// others out for ever.
type labelled[K comparable, V any] struct {
	// Immutable.
	limit  int
	add    func(K) V    // creates the metrics of a value
	drop   func(K, V)   // removes them from the exposition
	idle   func(V) bool // reports whether dropping them loses nothing but counters
	others func() V     // creates the metrics of values beyond the limit

	known sync.Map     // *labelledOne[V] by K
	n     atomic.Int64 // their number

	mu     sync.Mutex // guards changes of known
	pruned time.Time
	// doomed values are unknown already, and are dropped at the next prune; a goroutine that found their metrics before
	// can still count in them until then.
	doomed map[K]V
}

type labelledOne[V any] struct {
	of   V
	used atomic.Bool // since the last prune
}

// pruneEvery is the minimum time between two prunes, and so the minimum time that an unused value stays.
const pruneEvery = 5 * time.Minute

// get returns the metrics of key, and adds them if there is room and the key may be a label value.
func (t *labelled[K, V]) get(key K, presentable func(K) bool) V {
	if one := t.find(key); one != nil {
		if !one.used.Load() {
			one.used.Store(true)
		}
		return one.of
	}
	if t.full() || !presentable(key) {
		return t.others()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.find(key); one != nil {
		return one.of
	}
	if t.full() {
		return t.others()
	}
	delete(t.doomed, key) // it would be the same series
	one := &labelledOne[V]{of: t.add(key)}
	one.used.Store(true)
	t.known.Store(key, one)
	t.n.Add(1)
	return one.of
}

// find returns a known value's metrics, or nil.
func (t *labelled[K, V]) find(key K) *labelledOne[V] {
	if one, ok := t.known.Load(key); ok {
		return one.(*labelledOne[V])
	}
	return nil
}

func (t *labelled[K, V]) full() bool { return t.n.Load() >= int64(t.limit) }

// prune forgets the values that were not used since the last prune, if the table is full and that was long enough ago,
// and drops those that it forgot then. So at most twice the limit is exposed, plus values with requests in flight.
func (t *labelled[K, V]) prune(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.full() && len(t.doomed) == 0 || now.Sub(t.pruned) < pruneEvery {
		return
	}
	t.pruned = now
	for key, of := range t.doomed {
		if t.idle(of) {
			t.drop(key, of)
			delete(t.doomed, key)
		}
	}
	if !t.full() {
		return
	}
	if t.doomed == nil {
		t.doomed = map[K]V{}
	}
	t.known.Range(func(key, value any) bool {
		if one := value.(*labelledOne[V]); !one.used.Swap(false) && t.idle(one.of) {
			t.doomed[key.(K)] = one.of
			t.known.Delete(key)
			t.n.Add(-1)
		}
		return true
	})
}
