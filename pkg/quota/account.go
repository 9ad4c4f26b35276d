package quota

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// buckets is the number of buckets in a window. mostBuckets is the largest number at a time: one more is being filled,
// and one may be leaving.
const (
	buckets     = 60
	mostBuckets = buckets + 2
)

// bucket has the tokens reserved within a sixtieth of a window. Times are relative to the epoch.
type bucket struct {
	begin, last time.Duration // of its first and its last reservation
	tokens      int64
}

// account has the recently used tokens of one tenant.
type account struct {
	key     string        `graph:"key"`
	window  time.Duration // the longest of the windows in which its tokens count
	buckets []bucket      // in the order of time
	used    int64         // sum over the buckets

	older, newer *account // its neighbours, by their last reservation

	ends   time.Duration // when its window will be empty without further use: its key in Accounts.ending
	number int32         // there
}

// Key implements heap.Item.
func (x *account) Key() heap.Key { return heap.Key{Value: uint64(x.ends)} }

// Handle implements heap.Item.
func (x *account) Handle() *int32 { return &x.number }

// slide forgets the buckets that have left the window.
func (x *account) slide(now time.Duration) {
	n := 0
	for n < len(x.buckets) && x.buckets[n].last+x.window <= now {
		x.used -= x.buckets[n].tokens
		n++
	}
	x.buckets = slices.Delete(x.buckets, 0, n)
}

// widen makes the account keep at least this window. It keeps a longer window until that is empty, so a tenant with two
// roles does not lose its use by a request in the role with the shorter window.
func (x *account) widen(now, window time.Duration) {
	x.window = max(x.window, window)
	if x.slide(now); len(x.buckets) == 0 {
		x.window = window
	}
}

// add counts tokens from now on in a window, and returns the beginning of their bucket.
func (x *account) add(now, window time.Duration, tokens int64) time.Duration {
	x.used += tokens
	if n := len(x.buckets); n > 0 {
		if b := &x.buckets[n-1]; now-b.begin < window/buckets {
			b.last = now
			b.tokens += tokens
			return b.begin
		}
	}
	if len(x.buckets) == mostBuckets {
		x.merge(now)
	}
	x.buckets = append(x.buckets, bucket{begin: now, last: now, tokens: tokens})
	return now
}

// merge merges two neighbouring buckets: those whose common time is the smallest part of their age. Only windows of
// different lengths lead to so many buckets.
func (x *account) merge(now time.Duration) {
	best, bestSpan, bestAge := 0, int64(0), int64(0)
	for i := range len(x.buckets) - 1 {
		span := (x.buckets[i+1].last - x.buckets[i].begin).Milliseconds() + 1
		age := (now - x.buckets[i+1].last).Milliseconds() + 1
		if i == 0 || span*bestAge < bestSpan*age {
			best, bestSpan, bestAge = i, span, age
		}
	}
	x.buckets[best].last = x.buckets[best+1].last
	x.buckets[best].tokens += x.buckets[best+1].tokens
	x.buckets = slices.Delete(x.buckets, best+1, best+2)
}

// takeBack subtracts tokens from the bucket of begin, if it is still in the window.
func (x *account) takeBack(begin time.Duration, tokens int64) {
	i, found := slices.BinarySearchFunc(x.buckets, begin, func(b bucket, begin time.Duration) int {
		return cmp.Compare(b.begin, begin)
	})
	if !found {
		i-- // it was merged into its predecessor, or has left
	}
	if i >= 0 && begin <= x.buckets[i].last {
		x.buckets[i].tokens -= tokens
		x.used -= tokens
	}
}

// usedIn returns the tokens used in a window, and the number of buckets before it.
func (x *account) usedIn(now, window time.Duration) (used int64, before int) {
	used = x.used
	for before < len(x.buckets) && x.buckets[before].last+window <= now {
		used -= x.buckets[before].tokens
		before++
	}
	return used, before
}

// until returns the time until the window has at most most tokens, without further use; 0 if it has now.
func (x *account) until(now, window time.Duration, most int64) (left time.Duration) {
	used, i := x.usedIn(now, window)
	for ; i < len(x.buckets) && used > most; i++ {
		used -= x.buckets[i].tokens
		left = x.buckets[i].last + window - now
	}
	return left
}
