package quota

import (
	"cmp"
	"slices"
	"time"
)

// buckets is the number of buckets in a window. mostBuckets is how many there may be at once: one more is being filled, and
// one may be leaving.
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
	window  time.Duration // of its last reservation
	buckets []bucket      // in the order of time
	used    int64         // sum over the buckets

	older, newer *account // its neighbours, by their last reservation
}

// slide forgets the buckets that have left the window.
func (x *account) slide(now time.Duration) {
	n := 0
	for n < len(x.buckets) && x.buckets[n].last+x.window <= now {
		x.used -= x.buckets[n].tokens
		n++
	}
	x.buckets = slices.Delete(x.buckets, 0, n)
}

// add counts tokens from now on, and returns the beginning of their bucket.
func (x *account) add(now time.Duration, tokens int64) time.Duration {
	x.used += tokens
	if n := len(x.buckets); n > 0 {
		if b := &x.buckets[n-1]; now-b.begin < x.window/buckets || n == mostBuckets {
			b.last = now
			b.tokens += tokens
			return b.begin
		}
	}
	x.buckets = append(x.buckets, bucket{begin: now, last: now, tokens: tokens})
	return now
}

// takeBack stops counting tokens of the bucket that begins then, if it is still in the window.
func (x *account) takeBack(begin time.Duration, tokens int64) {
	i, found := slices.BinarySearchFunc(x.buckets, begin, func(b bucket, begin time.Duration) int {
		return cmp.Compare(b.begin, begin)
	})
	if found {
		x.buckets[i].tokens -= tokens
		x.used -= tokens
	}
}

// until returns the time until the account has used at most so many tokens, if none are added; 0 if it has now.
func (x *account) until(now time.Duration, most int64) (left time.Duration) {
	used := x.used
	for i := 0; i < len(x.buckets) && used > most; i++ {
		used -= x.buckets[i].tokens
		left = x.buckets[i].last + x.window - now
	}
	return left
}
