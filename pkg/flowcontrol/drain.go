package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Drain rejects whatever waits, and every request from now on, with ErrDraining. Leases run to their end.
func (c *RequestQueueController) Drain() {
	now := time.Now()
	c.mu.Lock()
	defer c.unlock()
	c.draining = true
	var left []*fairqueue.Request
	c.contains("drain", func() { left = c.queue.Drain(nil) })
	for _, r := range left {
		l := r.Owner.(*Lease)
		c.leaves(l)
		l.end(ErrDraining, c.retryAfter(now, l, ErrDraining))
	}
	c.arm(now)
}
