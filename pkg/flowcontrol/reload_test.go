package flowcontrol

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// reload changes the running configuration.
func (b *bench) reload(change func(*Config)) error {
	cfg := b.config
	cfg.Queue.Tiers = append([]fairqueue.TierConfig(nil), cfg.Queue.Tiers...)
	cfg.Tiers = append([]dispatch.TierConfig(nil), cfg.Tiers...)
	change(&cfg)
	err := b.Reconfigure(cfg, nil)
	synctest.Wait()
	return err
}

func (b *bench) mustReload(change func(*Config)) {
	b.t.Helper()
	if err := b.reload(change); err != nil {
		b.t.Fatal(err)
	}
}

func TestInvalidReloadChangesNothing(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		holder := b.arrives(b.t.Context(), of(bulk))
		waits := b.arrives(b.t.Context(), of(bulk))
		before := fmt.Sprintf("%+v", b.State())
		err := b.reload(func(c *Config) {
			c.Queue.TotalCapacity, c.Queue.FlowCapacity = 0, -1
			c.NumPoppers, c.ReleaseSpacing = 0, 1001*time.Millisecond
		})
		for _, field := range []string{"TotalCapacity: 0", "FlowCapacity: -1", "NumPoppers: 0", "ReleaseSpacing: 1.001s"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				b.t.Errorf("%v does not name %s", err, field)
			}
		}
		for _, change := range []func(*Config){
			func(c *Config) { c.Queue.TierMode = fairqueue.Weighted },
			func(c *Config) { c.Queue.CapacityMode = fairqueue.Reserved },
			func(c *Config) { c.Queue.Discipline = fairqueue.OneFlow },
		} {
			if err := b.reload(change); err == nil || !strings.Contains(err.Error(), "cannot change at run time") {
				b.t.Errorf("%v", err)
			}
		}
		if after := fmt.Sprintf("%+v", b.State()); after != before {
			b.t.Errorf("changed:\n%s\n%s", before, after)
		}
		complete(holder.lease)
		b.want(waits, "dispatched")
		complete(waits.lease)
	})
}

// The number of poppers follows; Run ends them all.
func TestPoppersFollowTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(DefaultConfig(), ready(1), logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = c.Run(ctx); close(done) }()
		for _, n := range []int{1, 100, 3} {
			cfg := DefaultConfig()
			cfg.NumPoppers = n
			if err := c.Reconfigure(cfg, func() {}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		stop()
		<-done
	})
}
