package datastore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

var errSick = errors.New("sick")

// clinic answers probes by address, and counts them.
type clinic struct {
	mu     sync.Mutex
	sick   map[string]bool
	probes map[string]int
	now    int // under way
	most   int // at once
	takes  time.Duration
}

func (c *clinic) probe(ctx context.Context, address string) error {
	c.mu.Lock()
	c.probes[address]++
	c.now++
	c.most = max(c.most, c.now)
	takes := c.takes
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}()
	if takes > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(takes):
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sick[address] {
		return errSick
	}
	return nil
}

func (c *clinic) set(address string, sick bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sick[address] = sick
}

func (c *clinic) count(address string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.probes[address]
}

// inClinic runs a test in a bubble of fake time, with a probing store: every 5 s, 3 failures, 2 successes.
func inClinic(t *testing.T, test func(t *testing.T, s *Store, c *clinic)) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.Probe.Enabled, config.Probe.SuccessThreshold = true, 2
		s := mustNew(t, config)
		c := &clinic{sick: map[string]bool{}, probes: map[string]int{}}
		s.prober.probe = c.probe
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		test(t, s, c)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestReadyAfterTheFirstSuccess(t *testing.T) {
	inClinic(t, func(t *testing.T, s *Store, c *clinic) {
		c.set("10.0.0.2:80", true)
		var first []string
		s.Subscribe(func(snap *scheduling.Snapshot) {
			if snap.Version() == 1 {
				first = seen(snap)
			}
		})
		s.Set(at("10.0.0.1:80", "10.0.0.2:80"))
		synctest.Wait()
		if !slices.Equal(first, []string{"-10.0.0.1:80", "-10.0.0.2:80"}) {
			t.Fatalf("at first %q", first)
		}
		wantSeen(t, s.Current(), "10.0.0.1:80", "-10.0.0.2:80") // new ones are probed at once
		c.set("10.0.0.2:80", false)
		pass(5*time.Second - 1)
		wantSeen(t, s.Current(), "10.0.0.1:80", "-10.0.0.2:80")
		pass(1)
		wantSeen(t, s.Current(), "10.0.0.1:80", "10.0.0.2:80") // one success is enough for the first time
	})
}

func TestThresholds(t *testing.T) {
	inClinic(t, func(t *testing.T, s *Store, c *clinic) {
		const a = "10.0.0.1:80"
		s.Set(at(a))
		synctest.Wait()
		c.set(a, true)
		pass(10 * time.Second) // two failures
		wantSeen(t, s.Current(), a)
		c.set(a, false)
		pass(5 * time.Second) // a success ends the row
		c.set(a, true)
		pass(10 * time.Second)
		wantSeen(t, s.Current(), a)
		pass(5 * time.Second) // the third
		wantSeen(t, s.Current(), "-"+a)
		c.set(a, false)
		pass(5 * time.Second)
		wantSeen(t, s.Current(), "-"+a)
		pass(5 * time.Second) // the second success
		wantSeen(t, s.Current(), a)
		if v := s.Current().Version(); v != 4 {
			t.Errorf("version %d: something was published that is no change", v)
		}
	})
}

// The source's word counts too, and who comes back has to prove itself again.
func TestProbingFollowsTheList(t *testing.T) {
	inClinic(t, func(t *testing.T, s *Store, c *clinic) {
		const a, b = "10.0.0.1:80", "10.0.0.2:80"
		s.Set(append(at(a), scheduling.Endpoint{Address: b}))
		synctest.Wait()
		wantSeen(t, s.Current(), a, "-"+b) // healthy, but not ready by its source
		s.Set(at(b))
		wantSeen(t, s.Current(), b) // its probes are remembered
		n := c.count(a)
		pass(time.Minute)
		if c.count(a) != n {
			t.Error("an unlisted endpoint is probed")
		}
		c.set(a, true)
		s.Set(at(a, b))
		synctest.Wait()
		wantSeen(t, s.Current(), "-"+a, b)
		s.Set(nil)
		n = c.count(b)
		pass(time.Hour)
		if c.count(b) != n {
			t.Error("an empty pool is probed")
		}
	})
}

// A slow probe is bounded by the timeout, and all of them by maxProbes; one that was unlisted while it was asked does
// not come back.
func TestProbesAreBounded(t *testing.T) {
	inClinic(t, func(t *testing.T, s *Store, c *clinic) {
		c.takes = time.Minute
		var many []string
		for i := range 100 {
			many = append(many, fmt.Sprintf("10.0.0.%d:80", i+1))
		}
		s.Set(at(many...))
		pass(time.Second)
		s.Set(at(many[1:]...))
		pass(time.Minute)
		if c.most != maxProbes {
			t.Errorf("%d probes at once, want %d", c.most, maxProbes)
		}
		if n := c.count(many[0]); n != 1 {
			t.Errorf("the unlisted one was probed %d times", n)
		}
		// 32 at a time of 2 s each: everybody has had a turn within 8 s, and about 10 in a minute.
		for _, address := range many[1:] {
			if n := c.count(address); n < 6 || n > 12 {
				t.Errorf("%s was probed %d times", address, n)
			}
		}
	})
}

// The real thing: 2xx is ready, redirects are not followed, and the connection is used again.
func TestHTTPProbe(t *testing.T) {
	status := atomic.Int32{}
	status.Store(http.StatusNoContent)
	var connections, redirected atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/ready" || r.Method != http.MethodGet:
			redirected.Add(1)
		case status.Load() == http.StatusFound:
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		default:
			w.WriteHeader(int(status.Load()))
			if status.Load() != http.StatusNoContent {
				_, _ = w.Write([]byte(strings.Repeat("x", 1000)))
			}
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()

	config := DefaultConfig().Probe
	config.Path = "/ready"
	transport := newProbeTransport(config)
	defer transport.CloseIdleConnections()
	probe := httpProbe(transport, config)
	for _, c := range []struct {
		status int
		ready  bool
	}{{204, true}, {200, true}, {302, false}, {404, false}, {503, false}, {299, true}} {
		status.Store(int32(c.status))
		if err := probe(t.Context(), server.Listener.Addr().String()); (err == nil) != c.ready {
			t.Errorf("status %d: %v", c.status, err)
		}
	}
	if connections.Load() != 1 || redirected.Load() != 0 {
		t.Errorf("%d connections, %d redirects followed", connections.Load(), redirected.Load())
	}
	if err := probe(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("nobody there, and ready")
	}
}

// From the list to the snapshot, over the network.
func TestProbingEndToEnd(t *testing.T) {
	healthy := atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	config := DefaultConfig()
	config.Endpoints = []string{server.Listener.Addr().String()}
	config.Probe.Enabled, config.Probe.Interval = true, minProbeInterval
	s := mustNew(t, config)
	states := make(chan bool, 100)
	s.Subscribe(func(snap *scheduling.Snapshot) { states <- snap.At(0).Ready })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	if eventually(t, states, "the list") {
		t.Error("ready before the first success")
	}
	for _, state := range []bool{true, false, true} {
		healthy.Store(state)
		if eventually(t, states, "a change") != state {
			t.Fatalf("not %v", state)
		}
	}
	cancel()
	if err := eventually(t, done, "the end of Run"); err != nil {
		t.Error(err)
	}
}
