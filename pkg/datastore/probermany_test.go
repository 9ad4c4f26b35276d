package datastore

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// A slow probe is bounded by its timeout, and the number of probes by maxProbes; an endpoint that was removed from the
// list during its probe does not come back.
func TestProbesAreBounded(t *testing.T) {
	inClinic(t, func(t *testing.T, s *Store, c *clinic) {
		c.mu.Lock()
		c.takes = time.Minute
		c.mu.Unlock()
		s.prober.most = maxProbes // whatever limit this machine has
		endpoints := many(3 * maxProbes)
		s.Set(endpoints)
		pass(time.Second)
		s.Set(endpoints[1:])
		pass(time.Minute)
		c.mu.Lock()
		most := c.most
		c.mu.Unlock()
		if most != maxProbes {
			t.Errorf("%d probes at once, want %d", most, maxProbes)
		}
		if n := c.count(endpoints[0].Address); n != 1 {
			t.Errorf("the unlisted one was probed %d times", n)
		}
		// maxProbes at a time take 2 s: each endpoint is probed within 6 s, and then every 7 to 8 s.
		for _, e := range endpoints[1:] {
			if n := c.count(e.Address); n < 7 || n > 9 {
				t.Errorf("%s was probed %d times", e.Address, n)
			}
		}
	})
}

// Where the process may open only a few files, hanging probes leave most of them to the streams.
func TestProbesLeaveFilesToTheStreams(t *testing.T) {
	for files, want := range map[uint64]int{1: 1, 1024: 256, 4096: 1024, 8192: maxProbes, 1 << 20: maxProbes, math.MaxUint64: maxProbes} {
		if got := probesAtOnce(files); got != want {
			t.Errorf("of %d files %d probes at once, want %d", files, got, want)
		}
	}
}

// When half of 2,000 endpoints hang, each becomes unready as soon as it would have alone: after three consecutive
// probes of 2 s, 5 s apart, the first at most 5 s after it began to hang. The other half stays ready.
func TestHalfOfManyHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.Probe.Enabled = true
		s := mustNew(t, config)
		s.prober.most = maxProbes // whatever limit this machine has
		var hanging atomic.Bool
		hangs := func(address string) bool { return hanging.Load() && strings.HasSuffix(address, ":81") }
		s.prober.probe = func(ctx context.Context, address string) error {
			if !hangs(address) {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		var endpoints []scheduling.Endpoint
		for i := range 1000 {
			endpoints = append(endpoints, at(
				fmt.Sprintf("10.0.%d.%d:80", i/250, i%250+1), fmt.Sprintf("10.0.%d.%d:81", i/250, i%250+1))...)
		}
		s.Set(endpoints)
		pass(gatherTime) // all are ready, and due again in 5 s
		unready := func() (n int) {
			for i := range s.Current().Len() {
				if e := s.Current().At(i); !e.Ready {
					n++
					if !hangs(e.Address) {
						t.Errorf("%s is not ready", e.Address)
					}
				}
			}
			return n
		}
		if n := unready(); n != 0 {
			t.Fatalf("%d are not ready at first", n)
		}
		hanging.Store(true)
		begun := time.Now()
		const first = 5*time.Second - gatherTime + 3*2*time.Second + 2*5*time.Second
		pass(first - 1)
		if n := unready(); n != 0 {
			t.Errorf("%d are not ready after %v", n, time.Since(begun))
		}
		pass(1)
		if n := unready(); n != 1000 {
			t.Errorf("%d are not ready after %v, want 1000", n, time.Since(begun))
		}
		pass(time.Minute)
		if n := unready(); n != 1000 {
			t.Errorf("%d are not ready after %v, want 1000", n, time.Since(begun))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
