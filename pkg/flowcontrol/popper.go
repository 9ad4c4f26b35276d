package flowcontrol

import (
	"context"
	"sync"
	"time"
)

// Run parks the poppers until ctx is over, and returns when they have ended. Requests are admitted, granted and
// completed without it; what needs it is time: expiry, starvation, the spacing of releases, and the retry after
// an unexpected error.
func (c *RequestQueueController) Run(ctx context.Context) error {
	var poppers sync.WaitGroup
	var stops []context.CancelFunc
	for {
		c.mu.Lock()
		want := c.config.NumPoppers
		c.unlock()
		for len(stops) < want {
			life, stop := context.WithCancel(ctx)
			stops = append(stops, stop)
			poppers.Go(func() { c.parkPopper(life) })
		}
		for len(stops) > want {
			stops[len(stops)-1]()
			stops = stops[:len(stops)-1]
		}
		select {
		case <-c.resize:
			continue
		case <-ctx.Done():
		}
		break
	}
	for _, stop := range stops {
		stop()
	}
	poppers.Wait()
	c.mu.Lock()
	c.timer.Stop()
	c.armed = time.Time{}
	c.unlock()
	return nil
}

// parkPopper is one popper.
func (c *RequestQueueController) parkPopper(ctx context.Context) {
	for {
		select {
		case <-c.poke:
			c.popOnce()
		case <-ctx.Done():
			return
		}
	}
}

// resizePoppers tells Run that the configured number may have changed.
func (c *RequestQueueController) resizePoppers() {
	select {
	case c.resize <- struct{}{}:
	default:
	}
}

// wakePopper wakes one popper; if one is about to wake already, that is enough.
func (c *RequestQueueController) wakePopper() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

func (c *RequestQueueController) popOnce() {
	now := time.Now()
	c.mu.Lock()
	c.armed = time.Time{}
	if now.Before(c.retryAt) { // woken for the log, or by another's deadline
		c.expire(now)
	} else {
		c.retryAt = time.Time{}
		c.pump(now)
	}
	c.arm(now)
	failure := c.failure
	c.failure = nil
	wait := c.config.PopperWaitBase
	c.unlock()
	if failure != nil {
		c.log.Error(failure, "a decision failed; if it was a release, a popper tries again", "after", wait)
	}
}

// arm sets the timer to the next moment at which something is due. It only moves it forward: a timer that stands too
// early finds nothing to do and is armed anew.
func (c *RequestQueueController) arm(now time.Time) {
	if c.queue.Len() == 0 {
		if !c.armed.IsZero() {
			c.timer.Stop()
			c.armed = time.Time{}
		}
		return
	}
	at := now.Add(c.config.ExpiryCleanupInterval)
	if d, ok := c.queue.NextDeadline(); ok && d.Before(at) {
		at = d
	}
	if s, ok := c.queue.NextStarvation(now); ok && s.Before(at) {
		at = s
	}
	if !c.retryAt.IsZero() && c.retryAt.Before(at) {
		at = c.retryAt
	}
	if c.spaced {
		if soon := c.released.Add(c.config.ReleaseSpacing); soon.Before(at) {
			at = soon
		}
	}
	if c.armed.IsZero() || at.Before(c.armed) {
		c.armed = at
		c.timer.Reset(max(0, at.Sub(now)))
	}
}
