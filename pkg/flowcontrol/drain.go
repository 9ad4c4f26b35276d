package flowcontrol

import "time"

// Drain rejects whatever waits, and every request from now on, with ErrDraining. Leases run to their end.
func (c *RequestQueueController) Drain() {
	now := time.Now()
	c.mu.Lock()
	defer c.unlock()
	c.draining = true
	for _, r := range c.queue.Drain(nil) {
		l := r.Owner.(*Lease)
		c.leaves(l)
		l.end(ErrDraining, c.retryAfter(now, l, ErrDraining))
	}
	c.arm(now)
}
