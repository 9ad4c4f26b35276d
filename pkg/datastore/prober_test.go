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
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/weir-epp/weir/pkg/scheduling"
)

var errSick = errors.New("sick")

// clinic answers probes by address and counts them.
type clinic struct {
	mu     sync.Mutex
	sick   map[string]bool
	probes map[string]int
	now    int // running now
	most   int // the most that ran at once
	takes  time.Duration
	broken error // if set, every probe's result
}

// fail makes all probes end with err from now on.
func (c *clinic) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = err
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
	return c.broken
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

// inClinic runs a test in a synctest bubble with a store that probes every 5 s, with thresholds of 3 failures and 2
// successes.
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
		wantSeen(t, s.Current(), "10.0.0.1:80", "10.0.0.2:80") // the first time, one success is enough
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
		pass(5 * time.Second) // a success resets the count
		c.set(a, true)
		pass(10 * time.Second)
		wantSeen(t, s.Current(), a)
		pass(5 * time.Second) // the third in a row
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

// The source's readiness counts too, and an endpoint that comes back is probed as new.
func TestProbingFollowsTheList(t *testing.T) {
	inClinic(t, func(t *testing.T, s *Store, c *clinic) {
		const a, b = "10.0.0.1:80", "10.0.0.2:80"
		s.Set(append(at(a), scheduling.Endpoint{Address: b}))
		synctest.Wait()
		wantSeen(t, s.Current(), a, "-"+b) // healthy, but the source says not ready
		s.Set(at(b))
		wantSeen(t, s.Current(), b) // the results of its probes are kept
		n := c.count(a)
		pass(time.Minute)
		if c.count(a) != n {
			t.Error("an unlisted endpoint is probed")
		}
		c.set(a, true)
		s.Set(at(a, b))
		synctest.Wait()
		wantSeen(t, s.Current(), b, "-"+a)
		s.Set(nil)
		n = c.count(b)
		pass(time.Hour)
		if c.count(b) != n {
			t.Error("an empty pool is probed")
		}
	})
}

// A path that the operator named must exist: 404 or 401 means not ready, and nothing is guessed.
func TestNamedPathHasToBeThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.Probe.Enabled = true
		config.Endpoints = []string{"10.0.0.1:80", "10.0.0.2:80"}
		s := mustNew(t, config)
		s.prober.probe = func(_ context.Context, address string) error {
			return map[string]error{"10.0.0.1:80": statusError(404), "10.0.0.2:80": statusError(401)}[address]
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		pass(time.Minute)
		for i := range s.Current().Len() {
			if e := s.Current().At(i); e.Ready {
				t.Errorf("%s is ready", e.Address)
			}
		}
		cancel()
		do(t, <-done)
	})
}

// The default path may not exist, or may require a key. Any answer below 500 shows that the server is up; a refused
// connection, a timeout or a status of 500 and more shows that it is not.
func TestGuessedPath(t *testing.T) {
	const a, b = "10.0.0.1:80", "10.0.0.2:80"
	guess := func(t *testing.T, test func(s *Store, answer func(address string, err error), logged func(part string) int)) {
		synctest.Test(t, func(t *testing.T) {
			config := DefaultConfig()
			config.Probe.Enabled, config.Probe.Guessed = true, true
			config.Endpoints = []string{a, b}
			var mu sync.Mutex
			var lines []string
			s, err := New(config, funcr.New(func(_, args string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, args)
			}, funcr.Options{}))
			do(t, err)
			answers := map[string]error{}
			s.prober.probe = func(_ context.Context, address string) error {
				mu.Lock()
				defer mu.Unlock()
				return answers[address]
			}
			answer := func(address string, err error) {
				mu.Lock()
				defer mu.Unlock()
				answers[address] = err
			}
			logged := func(part string) (n int) {
				mu.Lock()
				defer mu.Unlock()
				for _, line := range lines {
					if strings.Contains(line, part) {
						n++
					}
				}
				return n
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			answer(a, statusError(404))
			answer(b, statusError(401))
			go func() { done <- s.Run(ctx) }()
			pass(gatherTime)
			test(s, answer, logged)
			cancel()
			do(t, <-done)
		})
	}
	t.Run("no such path, or a key is wanted: ready, and one warning", func(t *testing.T) {
		guess(t, func(s *Store, _ func(string, error), logged func(string) int) {
			wantSeen(t, s.Current(), a, b)
			pass(time.Hour)
			wantSeen(t, s.Current(), a, b)
			if n := logged("WARNING"); n != 1 {
				t.Errorf("%d warnings", n)
			}
		})
	})
	for name, failure := range map[string]error{
		"refused": syscall.ECONNREFUSED, "silent": context.DeadlineExceeded, "status 500": statusError(500), "status 503": statusError(503),
	} {
		t.Run(name+" three times in a row: unready, and ready again with any answer", func(t *testing.T) {
			guess(t, func(s *Store, answer func(string, error), _ func(string) int) {
				answer(a, failure)
				pass(15*time.Second - gatherTime - 1)
				wantSeen(t, s.Current(), a, b)
				pass(1)
				wantSeen(t, s.Current(), "-"+a, b)
				answer(a, statusError(404))
				pass(5 * time.Second)
				wantSeen(t, s.Current(), a, b)
			})
		})
	}
	t.Run("a path that was there and is gone is no failure either", func(t *testing.T) {
		guess(t, func(s *Store, answer func(string, error), _ func(string) int) {
			answer(a, nil)
			pass(5 * time.Second)
			answer(a, statusError(429))
			pass(time.Minute)
			wantSeen(t, s.Current(), a, b)
		})
	})
}

// An endpoint that never answers is logged once: otherwise an operator could not see why nothing is ready.
func TestNeverReadyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.Probe.Enabled = true
		config.Endpoints = []string{"10.0.0.1:80"}
		var lines atomic.Int32
		s, err := New(config, funcr.New(func(_, args string) {
			if strings.Contains(args, "not ready yet") && strings.Contains(args, "10.0.0.1:80") && strings.Contains(args, "sick") {
				lines.Add(1)
			}
		}, funcr.Options{}))
		do(t, err)
		s.prober.probe = func(context.Context, string) error { return errSick }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		pass(10*time.Second - 1)
		if n := lines.Load(); n != 0 {
			t.Errorf("logged after two probes")
		}
		pass(time.Hour)
		if n := lines.Load(); n != 1 {
			t.Errorf("logged %d times", n)
		}
		cancel()
		do(t, <-done)
	})
}

// A warning comes with the first failed probe of the last server that answered, once, and again after one has answered.
func TestWarnsWhenNoneAnswers(t *testing.T) {
	inClinic(t, func(t *testing.T, s *Store, c *clinic) {
		const a, b = "10.0.0.1:80", "10.0.0.2:80"
		var lines atomic.Int32
		s.prober.log = funcr.New(func(_, args string) {
			if strings.Contains(args, "WARNING: no model server answers") {
				lines.Add(1)
			}
		}, funcr.Options{})
		told := func(when string, want int32) {
			if n := lines.Load(); n != want {
				t.Errorf("%s: warned %d times, want %d", when, n, want)
			}
		}
		s.Set(at(a, b))
		synctest.Wait()
		c.set(a, true)
		pass(time.Minute)
		told("one of two is dead", 0)
		c.set(b, true)
		pass(5 * time.Second) // its next probe
		told("both are dead", 1)
		pass(time.Minute)
		told("both stay dead", 1)
		c.set(a, false)
		pass(5 * time.Second)
		c.set(a, true)
		pass(5 * time.Second)
		told("one has answered meanwhile", 2)
		c.set(b, false)
		pass(5 * time.Second)
		s.Set(at(a))
		pass(time.Minute)
		s.Set(at(a, b))
		pass(5 * time.Second)
		c.set(b, true)
		pass(5 * time.Second)
		told("one was taken out and came back", 3)
	})
}

// A probe that this machine has no file descriptor for says nothing about the endpoint.
func TestProbeThatCannotBeSent(t *testing.T) {
	inClinic(t, func(t *testing.T, s *Store, c *clinic) {
		const a = "10.0.0.1:80"
		s.Set(at(a))
		synctest.Wait()
		wantSeen(t, s.Current(), a)
		c.fail(fmt.Errorf("dialing: %w", syscall.EMFILE))
		pass(time.Minute)
		wantSeen(t, s.Current(), a)
		c.fail(errSick)
		pass(15 * time.Second)
		wantSeen(t, s.Current(), "-"+a)
	})
}

// Over real HTTP: 2xx is ready, redirects are not followed, and the connection is reused.
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
	transport := newProbeTransport(config, false)
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
