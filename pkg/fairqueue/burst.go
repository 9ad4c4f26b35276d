package fairqueue

import (
	"math/bits"
	"time"
)

// burst is the burst credit of every flow, over its weight. It grows while nothing waits and nothing is in flight, and
// shrinks to BurstDecay of itself when a request begins to wait. In MindRouter it lets a user use a whole idle cluster;
// here requests do so anyway, since they do not wait. Each flow has the same credit over its weight, so no order
// depends on it.
type burst struct {
	credit int64         // in millionths of cost at weight 1
	since  time.Duration // from then on nothing waits and nothing is in flight, if resting
	rests  bool
}

// rest notes that nothing waits and nothing is in flight.
func (b *burst) rest(now time.Duration) {
	if !b.rests {
		b.rests, b.since = true, now
	}
}

// wake notes that a request waits or is in flight.
func (b *burst) wake(now time.Duration, c *FairShareConfig) {
	b.credit, b.rests = b.at(now, c), false
}

// contend notes that a request begins to wait.
func (b *burst) contend(c *FairShareConfig) {
	b.credit = int64(mulDiv(uint64(b.credit), uint64(c.BurstDecay), millionth))
}

// at returns the credit.
func (b *burst) at(now time.Duration, c *FairShareConfig) int64 {
	most := int64(c.BurstCap) * millionth
	if !b.rests || now < b.since {
		return min(b.credit, most)
	}
	hi, grown := bits.Mul64(uint64(now-b.since), uint64(c.BurstRate)*millionth)
	if grown /= uint64(time.Second); hi > 0 { // a long rest
		grown = mulDiv(uint64(now-b.since), uint64(c.BurstRate)*millionth, uint64(time.Second))
	}
	return min(b.credit+int64(grown), most)
}

// stirs is called before a request waits or goes.
func (s *fairShares) stirs(waits bool) {
	q := s.queue
	if q.epoch.IsZero() {
		q.epoch, q.event = q.now, event{now: q.now}
	}
	if s.burst.rests {
		s.burst.wake(q.Since(q.now), s.config())
	}
	if waits && q.queued == 0 {
		s.burst.contend(s.config())
	}
}

// settles is called after a request has ended or left the queue.
func (s *fairShares) settles() {
	if q := s.queue; q.queued == 0 && q.inflight == 0 {
		s.burst.rest(q.Since(q.now))
	}
}
