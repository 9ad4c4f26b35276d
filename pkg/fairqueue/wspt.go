package fairqueue

import "time"

// wspt is weighted shortest processing time first (Smith 1956): the least cost over (1 + priority), in fixed point with
// wsptBits binary digits, rounded down.
type wspt struct{}

const wsptBits = 20

func (wspt) rank(_, _ time.Duration, r *Request) uint64 {
	return rankOf(r, int64(r.Cost)<<wsptBits/(1+r.priority()))
}
