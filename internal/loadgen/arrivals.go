package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// DefaultMaxInFlight is the default of OpenLoop.MaxInFlight.
const DefaultMaxInFlight = 1024

// Arrivals is an arrival process: a [ClosedLoop], an [OpenLoop] or a [Schedule].
type Arrivals interface {
	validate() error
	// run sends the session's requests and returns when all of them have ended.
	run(ctx context.Context, s *session)
}

// ClosedLoop is a number of workers. Each sends its next request when its last one was answered.
type ClosedLoop struct {
	// Workers is the number of workers, 1 or more.
	Workers int
	// Stagger is the time between the starts of two workers, 0 or more. Workers that start together stay in phase while
	// the server's times are equal, and then measure their own rhythm.
	Stagger time.Duration
	// Staggered is the number of workers that start one by one: worker i starts after i times Stagger. The others start
	// together, one Stagger after the last of these. 0 staggers all.
	Staggered int
}

func (l ClosedLoop) validate() error {
	var errs []error
	if l.Workers <= 0 {
		errs = append(errs, fmt.Errorf("closed loop: workers must be above 0, not %d", l.Workers))
	}
	if l.Stagger < 0 {
		errs = append(errs, fmt.Errorf("closed loop: stagger must not be negative, not %v", l.Stagger))
	}
	if l.Staggered < 0 {
		errs = append(errs, fmt.Errorf("closed loop: staggered must not be negative, not %d", l.Staggered))
	}
	return errors.Join(errs...)
}

// delay returns the time from the workload's begin to the start of worker i.
func (l ClosedLoop) delay(i int) time.Duration {
	if l.Staggered > 0 {
		i = min(i, l.Staggered)
	}
	return time.Duration(i) * l.Stagger
}

func (l ClosedLoop) run(ctx context.Context, s *session) {
	var workers sync.WaitGroup
	for i := range l.Workers {
		workers.Go(func() {
			if !sleepUntil(ctx, s.begin.Add(l.delay(i))) {
				return
			}
			exchanger := s.newExchanger()
			for now := time.Now(); now.Before(s.end) && ctx.Err() == nil; now = time.Now() {
				index, ok := s.claim()
				if !ok {
					return
				}
				exchanger.send(ctx, index, now)
			}
		})
	}
	workers.Wait()
}

// OpenLoop sends requests at a rate, however long the answers take.
type OpenLoop struct {
	// Rate is the arrivals per second, above 0.
	Rate float64
	// Poisson draws exponential times between arrivals; otherwise the times are equal and the first request is sent at
	// once.
	Poisson bool
	// Seed determines the draws.
	Seed uint64
	// MaxInFlight limits the requests of this workload in flight; an arrival beyond that is recorded as ErrUnsent. 0
	// means DefaultMaxInFlight.
	MaxInFlight int
}

func (l OpenLoop) validate() error {
	var errs []error
	if !(l.Rate > 0) || l.Rate > 1e6 {
		errs = append(errs, fmt.Errorf("open loop: rate must be above 0 and at most 1e6 per second, not %v", l.Rate))
	}
	if l.MaxInFlight < 0 {
		errs = append(errs, fmt.Errorf("open loop: max in flight must not be negative, not %d", l.MaxInFlight))
	}
	return errors.Join(errs...)
}

// due returns a function that yields the arrivals one by one, each as the time since the workload's begin.
func (l OpenLoop) due() func() time.Duration {
	random := rand.New(rand.NewPCG(l.Seed, 0))
	var at float64 // seconds
	var n int
	return func() time.Duration {
		if l.Poisson {
			at += random.ExpFloat64() / l.Rate
		} else {
			at = float64(n) / l.Rate
			n++
		}
		return time.Duration(at * float64(time.Second))
	}
}

func (l OpenLoop) run(ctx context.Context, s *session) {
	next := l.due()
	s.runOpen(ctx, l.MaxInFlight, func() (time.Duration, bool) { return next(), true })
}

// Schedule sends each request at its time, however long the answers take.
type Schedule struct {
	// At are the times of the requests since the workload's begin, in order. It bounds the number of requests.
	At []time.Duration
	// MaxInFlight is as in OpenLoop.
	MaxInFlight int
}

func (l Schedule) validate() error {
	if l.MaxInFlight < 0 {
		return fmt.Errorf("schedule: max in flight must not be negative, not %d", l.MaxInFlight)
	}
	for i, at := range l.At {
		if at < 0 || i > 0 && at < l.At[i-1] {
			return fmt.Errorf("schedule: request %d is at %v, before the one before it", i, at)
		}
	}
	return nil
}

func (l Schedule) run(ctx context.Context, s *session) {
	i := 0
	s.runOpen(ctx, l.MaxInFlight, func() (at time.Duration, more bool) {
		if i == len(l.At) {
			return 0, false
		}
		i++
		return l.At[i-1], true
	})
}

// runOpen sends requests when they are due, by the time since the workload's begin, until there are no more.
func (s *session) runOpen(ctx context.Context, room int, next func() (due time.Duration, more bool)) {
	if room == 0 {
		room = DefaultMaxInFlight
	}
	var flights sync.WaitGroup
	defer flights.Wait()

	// There is one exchanger per request in flight. Idle ones are reused, the most recent first.
	var idle exchangerStack
	made := 0
	for {
		at, more := next()
		if !more {
			return
		}
		due := s.begin.Add(at)
		if !due.Before(s.end) || !sleepUntil(ctx, due) {
			return
		}
		index, ok := s.claim()
		if !ok {
			return
		}
		exchanger := idle.pop()
		if exchanger == nil && made < room {
			exchanger = s.newExchanger()
			made++
		}
		if exchanger == nil {
			s.record(index, due, ErrUnsent)
			continue
		}
		flights.Go(func() {
			exchanger.send(ctx, index, due)
			idle.push(exchanger)
		})
	}
}

// exchangerStack holds the idle exchangers.
type exchangerStack struct {
	mu   sync.Mutex
	idle []*exchanger
}

func (s *exchangerStack) push(e *exchanger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, e)
}

// pop returns nil if none is idle.
func (s *exchangerStack) pop() *exchanger {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	last := len(s.idle) - 1
	e := s.idle[last]
	s.idle = s.idle[:last]
	return e
}

// sleepUntil returns true at the given time, or false if the context ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
