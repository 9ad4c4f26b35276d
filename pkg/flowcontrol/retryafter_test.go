package flowcontrol

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// told is a rejected client's reason and retry time.
func (b *bench) told(r *Request) (reason string, wait time.Duration) {
	b.t.Helper()
	_, err := b.TryEnqueue(b.t.Context(), r)
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		b.t.Fatalf("%v", err)
	}
	return rejection.Outcome.String(), rejection.RetryAfter
}

// small is a queue of a few places, all of which one flow may have; further requests are rejected.
func small(places int) func(*Config) {
	return func(c *Config) {
		c.Queue.TotalCapacity, c.Queue.FlowCapacity = places, places
		c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 2, 2, 2
	}
}

// A client that asks for an unknown model again and again does not change others' retry times: it takes no place.
func TestUnknownModelsTakeNoPlaces(t *testing.T) {
	inBubble(t, ready(1), small(1), func(b *bench) {
		leases := b.holds(2)
		waiter := b.arrives(b.t.Context(), one("a"))
		low, high := time.Hour, time.Duration(0)
		for range 150 { // 10 a second for 15 s
			wait := b.Refuse("", "f", "nobody-has-it", "", ErrNoEndpoint).RetryAfter
			low, high = min(low, wait), max(high, wait)
			time.Sleep(100 * time.Millisecond)
		}
		if low < time.Second || high > 2*time.Second || high-low < 900*time.Millisecond {
			b.t.Errorf("they are told %v to %v", low, high)
		}
		if reason, wait := b.told(one("b")); reason != "queue-full" || wait != time.Second {
			b.t.Errorf("%s: the next client is told %v", reason, wait)
		}
		b.want(waiter, "waits")
		for _, l := range leases {
			complete(l)
		}
		complete(waiter.lease)
	})
}

// Requests rejected because no endpoint is ready take no places either.
func TestNoEndpointTakesNoPlace(t *testing.T) {
	change := func(c *Config) { small(1)(c); c.HoldWhenEmpty = false }
	inBubble(t, ready(1), change, func(b *bench) {
		b.backends.ready[0] = false
		b.update()
		for range 300 {
			if reason, wait := b.told(one("noisy")); reason != "no-endpoint" || wait < time.Second || wait > 2*time.Second {
				b.t.Fatalf("%s, told %v", reason, wait)
			}
		}
		b.backends.ready[0] = true
		b.update()
		leases := b.holds(2)
		waiter := b.arrives(b.t.Context(), one("a"))
		if reason, wait := b.told(one("b")); reason != "queue-full" || wait != time.Second {
			b.t.Errorf("%s: the next client is told %v", reason, wait)
		}
		for _, l := range leases {
			complete(l)
		}
		complete(waiter.lease)
	})
}

// Two slots of 4 s, four places in the queue and seven clients; the surplus one returns every 0.3 s, whatever it is
// told. The queue drains in 8 s, and no client is ever told more than twice that.
func TestWhoComesBackEarlyPushesNobodyOut(t *testing.T) {
	inBubble(t, ready(1), small(4), func(b *bench) {
		over, end := context.WithCancel(b.t.Context())
		for range 6 {
			go b.sendsUntil(over, 4*time.Second)
		}
		synctest.Wait()
		time.Sleep(5050 * time.Millisecond) // two were released; and nobody asks in the middle of two releases
		early, honest := 0, 0
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(300 * time.Millisecond) {
			if b.State().Queued < 4 {
				continue
			}
			for who, n := range map[string]*int{"a": &early, "b": &honest} { // of its flow, and of another
				reason, wait := b.told(one(who))
				if want := map[string]string{"a": "flow-full", "b": "queue-full"}[who]; reason != want {
					b.t.Fatalf("%s, want %s", reason, want)
				}
				if *n++; wait < 6*time.Second || wait > 18*time.Second {
					b.t.Errorf("rejection %d of %s, with 4 waiting that drain in 8 s, is told %v", *n, who, wait)
				}
			}
		}
		if early < 100 || honest < 100 {
			b.t.Errorf("only %d and %d rejections", early, honest)
		}
		end()
		time.Sleep(10 * time.Second)
	})
}

// Refusals for lack of memory are spread over the schedule, and delay no other client.
func TestRefusalsPushNoOthers(t *testing.T) {
	inBubble(t, ready(1), small(1), func(b *bench) {
		leases := b.holds(2)
		waiter := b.arrives(b.t.Context(), one("a"))
		told := map[time.Duration]bool{}
		for range 200 {
			wait := b.Refuse("", "", "noisy", "", ErrNoMemory).RetryAfter
			if told[wait] || wait < time.Second || wait > 5*time.Second {
				b.t.Errorf("told %v, before %t", wait, told[wait])
			}
			told[wait] = true
		}
		if _, wait := b.told(one("quiet")); wait > time.Second+10*time.Millisecond {
			b.t.Errorf("the quiet one is told %v", wait)
		}
		for _, l := range leases {
			complete(l)
		}
		complete(waiter.lease)
	})
}

// 64 slots of 10 s that end together, and clients that return when told: at any time the median retry time is between
// the drain time and twice that, or the schedule's end. Before, most were told 1 s.
func TestSlotsThatEndTogether(t *testing.T) {
	for _, waiting := range []int{100, 300, 1500} {
		change := func(c *Config) {
			small(waiting)(c)
			c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 64, 64, 64
			c.Queue.QueueTTL = time.Hour
		}
		inBubble(t, ready(1), change, func(b *bench) {
			over, end := context.WithCancel(b.t.Context())
			for range 64 + waiting + 20 { // some are always turned away
				go b.sendsUntil(over, 10*time.Second)
			}
			time.Sleep(20*time.Second + time.Millisecond)
			drain := time.Duration(waiting) * 10 * time.Second / 64
			least, most := min(drain*9/10, 25*time.Second), min(2*drain, 50*time.Second)
			for i := range 70 {
				if b.State().Queued == waiting {
					if reason, wait := b.told(one("b")); reason != "queue-full" || wait < least || wait > most {
						b.t.Errorf("%d waiting, after %d s: %s, told %v, want %v to %v", waiting, i, reason, wait, least, most)
					}
				}
				time.Sleep(time.Second + 11*time.Millisecond)
			}
			end()
			time.Sleep(time.Minute)
		})
	}
}

// sendsUntil sends one request after the other until over ends; each is served for the same time.
func (b *bench) sendsUntil(over context.Context, served time.Duration) {
	for over.Err() == nil {
		l, err := b.TryEnqueue(over, one("a"))
		if err != nil {
			time.Sleep(10 * time.Millisecond) // its place was taken by a hair
			continue
		}
		time.Sleep(served)
		l.OnRequestComplete(Completion{Status: 200})
	}
}
