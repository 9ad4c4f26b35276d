package datastore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/due"
	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// maxProbes is the largest number of concurrent probes; others wait, earliest due time first. A probe of a hanging
// endpoint takes its whole timeout, so with a low limit hanging endpoints would delay the probes of all others. With
// this limit, even 7,000 hanging endpoints are probed on time. A running probe costs little more than the idle
// connection that it leaves.
const maxProbes = 2048

// probesAtOnce returns maxProbes, or a quarter of the process's limit on open files if that is less. The rest is for
// streams.
func probesAtOnce(files uint64) int { return int(max(1, min(maxProbes, files/4))) }

// openFiles returns the process's limit on open files.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 4 * maxProbes
	}
	return limit.Cur
}

// prober checks over HTTP whether the listed endpoints are ready. One goroutine waits for the next due probe, and each
// running probe has a goroutine of its own.
type prober struct {
	config  ProbeConfig
	log     logr.Logger
	changed func() // called without mu held
	most    int    // probes at once
	h2c     atomic.Bool

	// probe sends one probe; nil means ready.
	probe func(ctx context.Context, address string) error
	wake  chan struct{} // of capacity 1: the earliest due time has changed

	lacking sync.Once // guards the warning about an endpoint without the default path

	// mu is the innermost lock: the store's mu is acquired before it.
	mu        sync.Mutex
	targets   map[scheduling.EndpointID]*target
	answering int                // number of targets whose last probe was answered
	due       heap.Heap[*target] // targets not being probed
}

type target struct {
	id      scheduling.EndpointID
	address string
	health  health
	due     time.Time
	answers bool  // its last probe was answered
	number  int32 // in the heap; 0 while it is being probed
}

func (t *target) Key() heap.Key { return heap.At(t.due) }

func (t *target) Handle() *int32 { return &t.number }

func newProber(config ProbeConfig, log logr.Logger, changed func()) *prober {
	return &prober{
		config:  config,
		log:     log,
		changed: changed,
		most:    probesAtOnce(openFiles()),
		wake:    make(chan struct{}, 1),
		targets: map[scheduling.EndpointID]*target{},
	}
}

// follow makes the listed endpoints the targets. New ones are probed at once; an endpoint that returns or has a new
// address counts as new.
func (p *prober) follow(listed []scheduling.Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	next := make(map[scheduling.EndpointID]*target, len(listed))
	for _, e := range listed {
		t := p.targets[e.ID]
		if t == nil || t.address != e.Address {
			t = &target{id: e.ID, address: e.Address, due: now}
			p.due.Push(t)
		}
		next[e.ID] = t
	}
	for id, t := range p.targets {
		if next[id] == t {
			continue
		}
		if t.number != 0 {
			p.due.Remove(t)
		}
		if t.answers {
			p.answering--
		}
	}
	p.targets = next
	due.Wake(p.wake)
}

// healthy reports whether the probes have found the endpoint ready.
func (p *prober) healthy(id scheduling.EndpointID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[id]
	return t != nil && t.health.ready
}

// run probes until ctx is done and the last probe has ended.
func (p *prober) run(ctx context.Context) {
	if p.probe == nil {
		transports := probeTransports{http1: newProbeTransport(p.config, false), h2c: newProbeTransport(p.config, true), use: &p.h2c}
		defer transports.close()
		p.probe = httpProbe(transports, p.config)
	}
	due.Run(ctx, p.most, p.wake, p.next, p.examine)
}

// next returns the next target to probe, for due.Run.
func (p *prober) next() (*target, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return due.First(&p.due, func(t *target) time.Time { return t.due })
}

// examine probes one target and records the result.
func (p *prober) examine(ctx context.Context, t *target) {
	probing, stop := context.WithTimeout(ctx, p.config.Timeout)
	err := p.probe(probing, t.address)
	stop()
	if ctx.Err() != nil {
		return // the probe was interrupted, so its result does not count
	}
	var answer statusError
	refused := errors.As(err, &answer) && p.config.Guessed && answer < http.StatusInternalServerError
	switch p.record(t, err == nil || refused, err) {
	case becameReady:
		p.log.Info("the endpoint is ready", "address", t.address)
		if refused {
			p.lacking.Do(func() {
				p.log.Info("WARNING: --probe-path: an endpoint answers the default probe path with an error and counts as ready "+
					"while it answers; name a path that it has, or turn probing off with --probe-path=",
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

// record records a result and returns the change. It ignores a probe that failed for lack of a file descriptor.
func (p *prober) record(t *target, alive bool, err error) finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.targets[t.id] != t {
		return sameAsBefore // it was removed from the list meanwhile
	}
	t.due = time.Now().Add(p.config.Interval)
	p.due.Push(t)
	due.Wake(p.wake)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return sameAsBefore
	}
	if alive != t.answers {
		t.answers = alive
		if alive {
			p.answering++
		} else if p.answering--; p.answering == 0 { // long before FailureThreshold
			p.log.Info("WARNING: no model server answers its probes (--probe-path); requests wait until one does, or until their TTL",
				"address", t.address, "reason", err.Error())
		}
	}
	return t.health.observe(alive, p.config)
}

// probeTransports sends each probe in the model servers' present protocol.
type probeTransports struct {
	http1, h2c *http.Transport
	use        *atomic.Bool // h2c
}

// RoundTrip implements http.RoundTripper.
func (t probeTransports) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.use.Load() {
		return t.h2c.RoundTrip(r)
	}
	return t.http1.RoundTrip(r)
}

func (t probeTransports) close() {
	t.http1.CloseIdleConnections()
	t.h2c.CloseIdleConnections()
}

func newProbeTransport(config ProbeConfig, h2c bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!h2c)
	protocols.SetUnencryptedHTTP2(h2c)
	return &http.Transport{
		Protocols:           protocols,
		Proxy:               nil, // endpoints are probed directly, without the environment's proxy
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     2 * (config.Interval + config.Timeout),
		DisableCompression:  true,
	}
}

// httpProbe returns a function that sends a GET. It does not follow redirects; they count as failures.
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
		const worthReading = 64 << 10 // enough to let the connection be reused
		_, _ = io.CopyN(io.Discard, response.Body, worthReading)
		_ = response.Body.Close()
		if response.StatusCode < 200 || response.StatusCode > 299 {
			return fmt.Errorf("probing: %w", statusError(response.StatusCode))
		}
		return nil
	}
}

// statusError is an HTTP status other than 2xx.
type statusError int

func (s statusError) Error() string { return "status " + strconv.Itoa(int(s)) }
