package quota

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// buckets is the number of buckets in a window. mostBuckets is the largest number at once: one more is being filled,
// and one may be leaving.
const (
	buckets     = 60
	mostBuckets = buckets + 2
)

// bucket has the tokens that were reserved within a sixtieth of a window. Times are relative to the epoch.
type bucket struct {
	begin, last time.Duration // of its first and its last reservation
	tokens      int64
}

// account has the tokens that one tenant has used lately.
type account struct {
	key     string
	window  time.Duration // the longest of the windows in which its tokens count
	buckets []bucket      // in the order of time
	used    int64         // sum over the buckets

	older, newer *account // its neighbours, by their last reservation

	ends   time.Duration // when its window is empty, if nothing more is used: its key in Accounts.ending
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

// widen makes the account remember at least so long a window. It remembers a longer one until it has used nothing in that: a
// tenant with two roles does not get rid of its use by a request in the one with the shorter window.
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

// merge makes one bucket of two neighbours: of those whose time together is the smallest part of their age. So many buckets
// come of windows of different lengths only.
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

// takeBack stops counting tokens of the bucket that has those which began then, if it is still in the window.
func (x *account) takeBack(begin time.Duration, tokens int64) {
	i, found := slices.BinarySearchFunc(x.buckets, begin, func(b bucket, begin time.Duration) int {
		return cmp.Compare(b.begin, begin)
	})
	if !found {
		i-- // it was merged with the one before, or has left
	}
	if i >= 0 && begin <= x.buckets[i].last {
		x.buckets[i].tokens -= tokens
		x.used -= tokens
	}
}

// usedIn returns the tokens that the account has used in a window, and the number of its buckets before that.
func (x *account) usedIn(now, window time.Duration) (used int64, before int) {
	used = x.used
	for before < len(x.buckets) && x.buckets[before].last+window <= now {
		used -= x.buckets[before].tokens
		before++
	}
	return used, before
}

// until returns the time until the account has used at most so many tokens in a window, if none are added; 0 if it has now.
func (x *account) until(now, window time.Duration, most int64) (left time.Duration) {
	used, i := x.usedIn(now, window)
	for ; i < len(x.buckets) && used > most; i++ {
		used -= x.buckets[i].tokens
		left = x.buckets[i].last + window - now
	}
	return left
}
