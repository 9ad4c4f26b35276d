package flowcontrol

import (
	"context"
	"sync"
	"time"
)

// Run parks the poppers until ctx is done, and returns when they have ended. Requests are admitted, granted and
// completed without it. Only timed work needs it: expiry, starvation, the spacing of releases, and the retry after an
// unexpected error.
func (c *RequestQueueController) Run(ctx context.Context) error {
	var poppers sync.WaitGroup
	var stops []context.CancelFunc
	for {
		c.mu.Lock()
		want := c.config.NumPoppers
		c.mu.Unlock()
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
	c.mu.Unlock()
	return nil
}

// parkPopper runs one popper.
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

// resizePoppers makes Run check the configured number of poppers.
func (c *RequestQueueController) resizePoppers() {
	select {
	case c.resize <- struct{}{}:
	default:
	}
}

// wakePopper wakes one popper, unless a wake-up is pending already.
func (c *RequestQueueController) wakePopper() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// popOnce does the work that is due, and logs failures.
func (c *RequestQueueController) popOnce() {
	now := time.Now()
	if failure := c.advance(now); failure != nil {
		c.log.Error(failure, "a decision failed; Weir tries its request again, and ends it at the second failure")
	}
}

func (c *RequestQueueController) advance(now time.Time) (failure error) {
	c.mu.Lock()
	defer c.end(now, nil)
	c.armed = time.Time{}
	failure, c.failure = c.failure, nil
	c.machine.Advance(now)
	return failure
}
