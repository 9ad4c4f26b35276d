package scrape

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// The parts of a scraper in tests, and an engine that it asks.

// watch is the owner of a scraper.
type watch struct {
	mu      sync.Mutex
	own     int
	signals map[scheduling.EndpointID]scheduling.Signals
	foreign map[scheduling.EndpointID]int
	times   map[scheduling.EndpointID]int // told
	failed  map[Reason]int
	lines   []string
}

func newWatch() *watch {
	return &watch{
		signals: map[scheduling.EndpointID]scheduling.Signals{}, foreign: map[scheduling.EndpointID]int{},
		times: map[scheduling.EndpointID]int{}, failed: map[Reason]int{},
	}
}

func (w *watch) parts() Parts {
	return Parts{
		Own: func(scheduling.EndpointID) int { w.mu.Lock(); defer w.mu.Unlock(); return w.own },
		Told: func(id scheduling.EndpointID, s scheduling.Signals, foreign int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.signals[id], w.foreign[id] = s, foreign
			w.times[id]++
		},
		Failed: func(r Reason) { w.mu.Lock(); defer w.mu.Unlock(); w.failed[r]++ },
	}
}

func (w *watch) log() logr.Logger {
	return funcr.New(func(_, args string) { w.mu.Lock(); defer w.mu.Unlock(); w.lines = append(w.lines, args) }, funcr.Options{})
}

func (w *watch) of(id scheduling.EndpointID) (s scheduling.Signals, foreign int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.signals[id], w.foreign[id]
}

func (w *watch) told(id scheduling.EndpointID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times[id]
}

func (w *watch) logged() []string { w.mu.Lock(); defer w.mu.Unlock(); return slices.Clone(w.lines) }

func (w *watch) failures(r Reason) int { w.mu.Lock(); defer w.mu.Unlock(); return w.failed[r] }

func poolOf(addresses ...string) *scheduling.Snapshot {
	var list []scheduling.Endpoint
	for i, a := range addresses {
		list = append(list, scheduling.Endpoint{ID: scheduling.EndpointID(i), Key: a, Address: a, Ready: true})
	}
	return scheduling.NewSnapshot(1, list)
}

// engineAt is what a fake page says.
type engineAt struct {
	mu      sync.Mutex
	reading Reading
	err     error
	delay   time.Duration
	asked   int
	atOnce  int
}

func (e *engineAt) fetch(ctx context.Context, _ string) (Reading, error) {
	e.mu.Lock()
	e.asked++
	if e.atOnce++; e.atOnce > 1 {
		panic("two scrapes of one endpoint at once")
	}
	delay := e.delay
	e.mu.Unlock()
	defer func() { e.mu.Lock(); e.atOnce--; e.mu.Unlock() }()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return Reading{}, ctx.Err()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reading, e.err
}

func (e *engineAt) count() int { e.mu.Lock(); defer e.mu.Unlock(); return e.asked }

func (e *engineAt) set(change func()) { e.mu.Lock(); defer e.mu.Unlock(); change() }

// started runs a scraper in a bubble.
func started(t *testing.T, w *watch, fetch func(context.Context, string) (Reading, error)) *Scraper {
	t.Helper()
	s := New(DefaultConfig(), w.parts(), w.log())
	s.fetch = fetch
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	return s
}
