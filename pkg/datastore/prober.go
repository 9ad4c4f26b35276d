package datastore

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// maxProbes is how many probes run at once; the others wait for their turn, the one due first going first. One that hangs
// takes its whole timeout, so with fewer the endpoints that hang would hold up the finding out about each other: this is
// enough for each of 7,000 that hang to be asked when it is due. A probe under way costs little more than the idle
// connection that it leaves.
const maxProbes = 2048

// probesAtOnce is maxProbes, or a quarter of the files that the process may have open if that is less: the rest is for
// the streams, which matter more.
func probesAtOnce(files uint64) int { return int(max(1, min(maxProbes, files/4))) }

// openFiles is how many files the process may have open.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 4 * maxProbes
	}
	return limit.Cur
}

// prober asks the listed endpoints over HTTP whether they are ready. One goroutine waits for the next one due, and a
// goroutine lives for each probe under way.
type prober struct {
	config  ProbeConfig
	log     logr.Logger
	changed func() // called without mu held
	most    int    // probes at once

	// probe asks once; nil is ready.
	probe func(ctx context.Context, address string) error
	wake  chan struct{} // of capacity 1: the earliest due time changed

	lacking sync.Once // the warning that an endpoint has no such path

	// mu is the innermost lock: the store's is taken before it.
	mu      sync.Mutex
	targets map[string]*target // by address
	due     dueHeap            // those of targets that are not being probed
}

type target struct {
	address string
	health  health
	due     time.Time
	at      int // in the heap; -1: being probed
}

func newProber(config ProbeConfig, log logr.Logger, changed func()) *prober {
	return &prober{
		config:  config,
		log:     log,
		changed: changed,
		most:    probesAtOnce(openFiles()),
		wake:    make(chan struct{}, 1),
		targets: map[string]*target{},
	}
}

// follow makes the listed endpoints the targets. New ones are due at once; one that comes back has to prove itself
// again.
func (p *prober) follow(listed []scheduling.Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	next := make(map[string]*target, len(listed))
	for _, e := range listed {
		t := p.targets[e.Address]
		if t == nil {
			t = &target{address: e.Address, due: now}
			heap.Push(&p.due, t)
		}
		next[e.Address] = t
	}
	for address, t := range p.targets {
		if next[address] == nil && t.at >= 0 {
			heap.Remove(&p.due, t.at)
		}
	}
	p.targets = next
	p.awaken()
}

// healthy reports whether the probes found the endpoint ready.
func (p *prober) healthy(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[address]
	return t != nil && t.health.ready
}

func (p *prober) awaken() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run probes until ctx is done and the last probe has ended.
func (p *prober) run(ctx context.Context) {
	if p.probe == nil {
		transport := newProbeTransport(p.config)
		defer transport.CloseIdleConnections()
		p.probe = httpProbe(transport, p.config)
	}
	var probing sync.WaitGroup
	defer probing.Wait()
	slots := make(chan struct{}, p.most)
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for {
		t, wait := p.next()
		if t == nil {
			var ring <-chan time.Time // nil: nothing is due until something is listed
			if wait > 0 {
				timer.Reset(wait)
				ring = timer.C
			}
			select {
			case <-ctx.Done():
				return
			case <-p.wake:
			case <-ring:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		probing.Go(func() {
			p.examine(ctx, t)
			<-slots
		})
	}
}

// next takes the target that is due out of the heap; or returns how long until the next one is, 0 if there is none.
func (p *prober) next() (*target, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.due) == 0 {
		return nil, 0
	}
	if wait := time.Until(p.due[0].due); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&p.due).(*target), 0
}

// examine probes one target and takes the result in.
func (p *prober) examine(ctx context.Context, t *target) {
	probing, stop := context.WithTimeout(ctx, p.config.Timeout)
	err := p.probe(probing, t.address)
	stop()
	if ctx.Err() != nil {
		return // the probe was cut off, which says nothing about the endpoint
	}
	var answer statusError
	refused := errors.As(err, &answer) && p.config.Guessed && answer < http.StatusInternalServerError
	switch p.record(t, err == nil || refused, err) {
	case becameReady:
		p.log.Info("the endpoint is ready", "address", t.address)
		if refused {
			p.lacking.Do(func() {
				p.log.Info("WARNING: --probe-path: an endpoint answers the path that is probed by default with an error: it is taken "+
					"for ready while it answers; name a path that it has, or turn probing off with --probe-path=",
					"address", t.address, "path", p.config.Path, "status", int(answer))
			})
		}
		p.changed()
	case becameUnready:
		p.log.Info("the endpoint is not ready any more", "address", t.address, "reason", err.Error())
		p.changed()
	case neverReady:
		p.log.Info("the endpoint is not ready yet: its probes (--probe-path) fail", "address", t.address, "path", p.config.Path,
			"reason", err.Error())
	case sameAsBefore:
	}
}

// record takes a result in, and answers what it means. A probe that this machine could not send means nothing.
func (p *prober) record(t *target, alive bool, err error) finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.targets[t.address] != t {
		return sameAsBefore // unlisted meanwhile
	}
	t.due = time.Now().Add(p.config.Interval)
	heap.Push(&p.due, t)
	p.awaken()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return sameAsBefore
	}
	return t.health.observe(alive, p.config)
}

func newProbeTransport(config ProbeConfig) *http.Transport {
	return &http.Transport{
		Proxy:               nil, // never by the environment: the endpoints are asked directly
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     2 * (config.Interval + config.Timeout),
		DisableCompression:  true,
	}
}

// httpProbe asks with a GET. A redirect is an answer like another, and no 2xx.
func httpProbe(transport http.RoundTripper, config ProbeConfig) func(context.Context, string) error {
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, address string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+config.Path, http.NoBody)
		if err != nil {
			return fmt.Errorf("probing: %w", err)
		}
		request.Header.Set("User-Agent", "weir-probe")
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("probing: %w", err)
		}
		const worthReading = 64 << 10 // so that the connection can be used again
		_, _ = io.CopyN(io.Discard, response.Body, worthReading)
		_ = response.Body.Close()
		if response.StatusCode < 200 || response.StatusCode > 299 {
			return fmt.Errorf("probing: %w", statusError(response.StatusCode))
		}
		return nil
	}
}

// statusError is an HTTP status that is no success.
type statusError int

func (s statusError) Error() string { return "status " + strconv.Itoa(int(s)) }

// dueHeap orders targets by when they are due.
type dueHeap []*target

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push is for container/heap.
func (h *dueHeap) Push(x any) {
	t := x.(*target)
	t.at = len(*h)
	*h = append(*h, t)
}

// Pop is for container/heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.at = -1
	return t
}
