package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// stallMeter measures how late goroutines wake up on this machine. While other programs occupy the CPUs, answers due
// one after another arrive all at once, which would invalidate a latency benchmark.
type stallMeter struct {
	stop context.CancelFunc
	late chan []time.Duration // all of them, sent at the end
}

// stallEvery is the time between two samples, and maxStalls bounds their number.
const (
	stallEvery = 2 * time.Millisecond
	maxStalls  = 1 << 20
)

// newStallMeter starts measuring, until the context ends or String is called.
func newStallMeter(ctx context.Context) *stallMeter {
	ctx, stop := context.WithCancel(ctx)
	m := &stallMeter{stop: stop, late: make(chan []time.Duration, 1)}
	go func() {
		timer := time.NewTimer(stallEvery)
		defer timer.Stop()
		var late []time.Duration
		for due := time.Now().Add(stallEvery); ; due = time.Now().Add(stallEvery) {
			timer.Reset(stallEvery)
			select {
			case <-timer.C:
			case <-ctx.Done():
				m.late <- late
				return
			}
			if len(late) < maxStalls {
				late = append(late, time.Since(due))
			}
		}
	}()
	return m
}

// String ends the measurement and returns its result, with the machine's load. It must be called only once.
func (m *stallMeter) String() string {
	m.stop()
	late := <-m.late
	text := fmt.Sprintf("%d CPUs, load average %s", runtime.NumCPU(), loadAverage())
	if len(late) == 0 {
		return text
	}
	slices.Sort(late)
	return fmt.Sprintf("%s; a wake-up came late by %v at p99, %v at most", text,
		late[len(late)*99/100].Round(10*time.Microsecond), late[len(late)-1].Round(10*time.Microsecond))
}
