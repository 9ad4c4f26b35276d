package flowcontrol

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// labelled maps label values to their metrics, for at most limit values; all others share one set. Every request reads
// it, so reads take no lock. When it is full, prune makes room, so that names used once by clients do not keep others
// out for ever.
type labelled[K comparable, V any] struct {
	// Immutable.
	limit  int
	strict bool // forgotten values count against the limit while their series remain
	hash   func(K) uint64
	add    func(K) V    // creates the metrics of a value
	drop   func(K, V)   // removes them from the exposition
	idle   func(V) bool // reports whether dropping them loses nothing but counters
	others func() V     // creates the metrics of values beyond the limit

	known []atomic.Pointer[labelledOne[K, V]] // the first of each bucket; their number is a power of two
	n     atomic.Int64                        // the number of known values
	left  atomic.Int64                        // the number of doomed ones

	mu     sync.Mutex // guards changes of known
	pruned time.Time
	// doomed values are already unknown, and are dropped at the next prune; until then a goroutine that found their
	// metrics before can still count in them.
	doomed map[K]V
}

// labelledOne is a known value; all but used is immutable.
type labelledOne[K comparable, V any] struct {
	key  K
	of   V
	next *labelledOne[K, V] // of its bucket
	used atomic.Bool        // since the last prune
}

// mostBuckets bounds the memory of a table that is hardly used, in buckets of eight bytes.
const mostBuckets = 1 << 14

// bound sets the largest number of values; it is called once.
func (t *labelled[K, V]) bound(limit int) {
	t.limit = limit
	t.known = make([]atomic.Pointer[labelledOne[K, V]], 1<<bits.Len(uint(max(0, min(limit, mostBuckets)-1))))
}

var labelSeed = maphash.MakeSeed()

// hashOf returns the hash of a label value.
func hashOf(value string) uint64 { return maphash.String(labelSeed, value) }

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
	of, ok := t.doomed[key] // its series remain
	switch {
	case t.full(), t.strict && !ok && t.n.Load()+t.left.Load() >= int64(t.limit):
		return t.others()
	case ok:
		delete(t.doomed, key)
		t.left.Add(-1)
	default:
		of = t.add(key)
	}
	bucket := t.bucket(key)
	one := &labelledOne[K, V]{key: key, of: of, next: bucket.Load()}
	one.used.Store(true)
	bucket.Store(one)
	t.n.Add(1)
	return one.of
}

func (t *labelled[K, V]) bucket(key K) *atomic.Pointer[labelledOne[K, V]] {
	return &t.known[t.hash(key)&uint64(len(t.known)-1)]
}

// find returns a known value, or nil.
func (t *labelled[K, V]) find(key K) *labelledOne[K, V] {
	one := t.bucket(key).Load()
	for one != nil && one.key != key {
		one = one.next
	}
	return one
}

// shown appends the metrics of all values with series, doomed or not.
func (t *labelled[K, V]) shown(all []V) []V {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.all {
		all = append(all, of)
	}
	for _, of := range t.doomed {
		all = append(all, of)
	}
	return all
}

// all yields the known values with their metrics, in no order.
func (t *labelled[K, V]) all(yield func(K, V) bool) {
	for i := range t.known {
		for one := t.known[i].Load(); one != nil; one = one.next {
			if !yield(one.key, one.of) {
				return
			}
		}
	}
}

func (t *labelled[K, V]) full() bool { return t.n.Load() >= int64(t.limit) }

// prune forgets the values not used since the last prune, if the table is full and that prune is old enough, and drops
// the values forgotten then. So at most twice the limit is exposed, plus values with requests in flight; with strict,
// at most the limit.
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
			t.left.Add(-1)
		}
	}
	if !t.full() {
		return
	}
	if t.doomed == nil {
		t.doomed = map[K]V{}
	}
	for i := range t.known {
		t.pruneBucket(&t.known[i])
	}
}

// pruneBucket moves the values of a bucket that were not used since the last prune to doomed. Readers may be in the old
// list, so the bucket gets a new one.
func (t *labelled[K, V]) pruneBucket(bucket *atomic.Pointer[labelledOne[K, V]]) {
	var kept *labelledOne[K, V]
	for one := bucket.Load(); one != nil; one = one.next {
		if one.used.Load() || !t.idle(one.of) {
			kept = &labelledOne[K, V]{key: one.key, of: one.of, next: kept}
			continue
		}
		t.doomed[one.key] = one.of
		t.left.Add(1)
		t.n.Add(-1)
	}
	bucket.Store(kept)
}
