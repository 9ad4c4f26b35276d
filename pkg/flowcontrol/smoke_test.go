package flowcontrol

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/stock"
)

type pool struct{}

func (pool) Lane() string { return "" }

type onePlacer struct{ reserved int }

func (p *onePlacer) Place(Placement, Bound) Endpoint       { p.reserved++; return 0 }
func (p *onePlacer) PlaceAt(Placement, Endpoint)           { p.reserved++ }
func (p *onePlacer) Release(Endpoint)                      { p.reserved-- }
func (p *onePlacer) HasReady(Placement) bool               { return true }
func (p *onePlacer) CanServe(_ Placement, e Endpoint) bool { return e == 0 }

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &onePlacer{}
		c, err := New(DefaultConfig(), p, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.Run(ctx); close(done) }()
		c.SetBackends(make([]stock.Backend, 2), nil)
		var leases []*Lease
		for range 5 {
			l, err := c.TryEnqueue(ctx, &Request{Flow: "a", Placement: pool{}})
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		start := time.Now()
		_, err = c.TryEnqueue(ctx, &Request{Flow: "a", Placement: pool{}})
		if err == nil || OutcomeOf(err) != OutcomeTTLExpired || time.Since(start) != 30*time.Second {
			t.Fatal(err, time.Since(start))
		}
		go func() {
			time.Sleep(time.Second)
			leases[0].OnRequestComplete(Completion{})
			leases[0].OnRequestComplete(Completion{})
			synctest.Wait()
			if c.State().Stock != 4 {
				t.Error(c.State())
			}
			leases[1].OnRequestComplete(Completion{})
		}()
		l, err := c.TryEnqueue(ctx, &Request{Flow: "a", Placement: pool{}})
		if err != nil || time.Since(start) != 31*time.Second {
			t.Fatal(err)
		}
		if d, q := l.Queued(); d != time.Second || !q {
			t.Fatal(d, q)
		}
		t.Log(c.State())
		stop()
		<-done
	})
}
