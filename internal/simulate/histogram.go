package simulate

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets of less than 1 % of their value; below 128 µs, of 1 µs. The zero value is empty.
type histogram struct {
	counts []uint32
	n      uint64
	sum    time.Duration
	most   time.Duration
}

// fineBits is the number of bits that choose a bucket within its octave.
const fineBits = 7

func bucketOf(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < 1<<fineBits {
		return int(us)
	}
	octave := bits.Len64(us) - 1 - fineBits
	return octave<<fineBits + int(us>>octave)
}

// bucketEnd returns the largest duration of a bucket.
func bucketEnd(bucket int) time.Duration {
	if bucket < 1<<fineBits {
		return time.Duration(bucket) * time.Microsecond
	}
	octave := bucket>>fineBits - 1
	within := uint64(bucket - octave<<fineBits)
	return time.Duration((within+1)<<octave-1) * time.Microsecond
}

func (h *histogram) add(d time.Duration) {
	b := bucketOf(d)
	for b >= len(h.counts) {
		h.counts = append(h.counts, make([]uint32, b+1-len(h.counts)+1<<fineBits)...)
	}
	h.counts[b]++
	h.n++
	h.sum += d
	h.most = max(h.most, d)
}

// merge adds the durations of another histogram.
func (h *histogram) merge(o *histogram) {
	for len(h.counts) < len(o.counts) {
		h.counts = append(h.counts, 0)
	}
	for b, count := range o.counts {
		h.counts[b] += count
	}
	h.n += o.n
	h.sum += o.sum
	h.most = max(h.most, o.most)
}

func (h *histogram) mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return h.sum / time.Duration(h.n)
}

// quantile returns the smallest value not exceeded by the given thousandths of the durations; 0 if there are none.
func (h *histogram) quantile(thousandths uint64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := max(1, (h.n*thousandths+999)/1000)
	for b, count := range h.counts {
		if uint64(count) >= rank {
			return min(bucketEnd(b), h.most)
		}
		rank -= uint64(count)
	}
	return h.most
}
