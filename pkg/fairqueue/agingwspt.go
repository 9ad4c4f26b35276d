package fairqueue

import (
	"math/bits"
	"time"
)

// agingWSPT is wspt with ageing: the request with the least ln(cost/(1 + priority)) + arrival/T goes first, in fixed
// point with agingBits binary digits. A request's key never changes, since all requests age alike. A request with e^k
// times the cost over (1 + priority) of others is overtaken only by those that arrive within k·T after it: one of cost
// 1,000 waits for arrivals of cost 10 during ln(100)·T = 4.61 T. The score has room for 2^29 T after the queue's first
// request, 17 years with a T of 1 s.
type agingWSPT struct{ ageing time.Duration }

const agingBits = 20

func (w agingWSPT) rank(arrived, _ time.Duration, r *Request) uint64 {
	return rankOf(r, ln(uint64(r.Cost.clamp()))-ln(uint64(1+r.priority()))+w.age(arrived)+mostScore/2)
}

// age returns a time, before or after the queue's first request, over T.
func (w agingWSPT) age(d time.Duration) int64 {
	if d < 0 {
		return -w.age(max(-d, 0))
	}
	hi, lo := bits.Mul64(uint64(d), 1<<agingBits)
	age, _ := bits.Div64(hi, lo, uint64(w.ageing)) // hi < 2^20 < MinAgeing
	return int64(min(age, mostScore))
}

// ln returns the natural logarithm of n >= 1, in fixed point with agingBits digits. It computes bit by bit: the next
// bit of log2(m), for m in [1, 2), is 1 if m² >= 2.
func ln(n uint64) int64 {
	const digits, ln2 = agingBits + 4, 744_261_118 // ln 2 in 30 binary digits
	whole := bits.Len64(n) - 1
	log := uint64(whole)
	m := n << (63 - whole) // with 63 binary digits
	for range digits {
		hi, lo := bits.Mul64(m, m)
		log <<= 1
		if hi>>63 == 1 {
			log, m = log|1, hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	return int64(log * ln2 >> (30 + digits - agingBits))
}
