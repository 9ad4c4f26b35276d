package flowcontrol

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// labelled maps label values to their metrics, for at most limit values; all others share one set. It is read for each
// request, so the map is replaced as a whole and reads take no lock. When it is full, prune makes room, so that names
// that clients used once do not keep others out for ever.
type labelled[K comparable, V any] struct {
	// Immutable.
	limit  int
	add    func(K) V    // creates the metrics of a value
	drop   func(K, V)   // removes them from the exposition
	idle   func(V) bool // reports whether dropping them loses nothing but counters
	others func() V     // creates the metrics of values beyond the limit

	known atomic.Pointer[map[K]*labelledOne[V]]

	mu     sync.Mutex // guards replacing the map
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

func (t *labelled[K, V]) load() map[K]*labelledOne[V] {
	if known := t.known.Load(); known != nil {
		return *known
	}
	return nil
}

// get returns the metrics of key, and adds them if there is room and the key may be a label value.
func (t *labelled[K, V]) get(key K, presentable func(K) bool) V {
	known := t.load()
	if one := known[key]; one != nil {
		if !one.used.Load() {
			one.used.Store(true)
		}
		return one.of
	}
	if len(known) >= t.limit || !presentable(key) {
		return t.others()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known = t.load()
	if one := known[key]; one != nil {
		return one.of
	}
	if len(known) >= t.limit {
		return t.others()
	}
	delete(t.doomed, key) // it would be the same series
	one := &labelledOne[V]{of: t.add(key)}
	one.used.Store(true)
	more := maps.Clone(known)
	if more == nil {
		more = map[K]*labelledOne[V]{}
	}
	more[key] = one
	t.known.Store(&more)
	return one.of
}

// prune forgets the values that were not used since the last prune, if the table is full and that was long enough ago,
// and drops those that it forgot then. So at most twice the limit is exposed, plus values with requests in flight.
func (t *labelled[K, V]) prune(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.load()
	if len(known) < t.limit && len(t.doomed) == 0 || now.Sub(t.pruned) < pruneEvery {
		return
	}
	t.pruned = now
	for key, of := range t.doomed {
		if t.idle(of) {
			t.drop(key, of)
			delete(t.doomed, key)
		}
	}
	if len(known) < t.limit {
		return
	}
	if t.doomed == nil {
		t.doomed = map[K]V{}
	}
	kept := map[K]*labelledOne[V]{}
	for key, one := range known {
		if one.used.Swap(false) || !t.idle(one.of) {
			kept[key] = one
		} else {
			t.doomed[key] = one.of
		}
	}
	t.known.Store(&kept)
}
