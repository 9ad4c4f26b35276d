package dispatch_test

import (
	"fmt"
	"slices"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Changes of the pool and of the configuration.

// mends restores the whole pool at the end, so every waiting request can go.
func (x *run) mends() {
	pool := slices.Clone(x.scene.pool)
	for i := range pool {
		pool[i].Ready = true
	}
	x.setPool(pool)
}

// changes applies a change of the scene.
func (x *run) changes(c change) {
	switch {
	case c.config != nil:
		x.reloads(*c.config)
	case c.pool != nil:
		x.setPool(c.pool)
	default:
		x.event(fmt.Sprintf("others hold %+v", c.foreign), func() { x.m.SetForeign(x.now, c.foreign) }, func() {
			for _, f := range c.foreign {
				if e := x.endpoint(scheduling.EndpointID(f.ID)); e != nil && e.Ready {
					x.foreign[f.ID] = f.Held
				}
			}
		})
	}
}

func (x *run) reloads(cfg dispatch.Config) {
	if err := x.m.Configurable(cfg); err != nil {
		x.note("a reload is refused: %v", err)
		return
	}
	x.event("reload", func() {
		if err := x.m.Configure(x.now, cfg); err != nil {
			x.failf("reload: %w", err)
		}
	}, func() {
		x.config = cfg
		x.rank()
		x.shares.reset()
		x.turns.reset()
	})
}

// rank learns the tiers' ranks and names.
func (x *run) rank() {
	x.ranks, x.named = map[int]int{}, map[string]int{}
	for rank, t := range x.m.Tiers(nil) {
		x.ranks[t.ID] = rank
		for _, c := range x.config.Queue.Tiers {
			if c.Name == t.Name {
				x.named[t.Name] = t.ID
			}
		}
	}
}

// setPool changes the endpoints, as the datastore does.
func (x *run) setPool(pool []scheduling.Endpoint) {
	var ready []stock.Backend
	for _, e := range pool {
		if e.Ready {
			ready = append(ready, stock.Backend{ID: stock.BackendID(e.ID), Slots: int32(e.Slots)})
		}
	}
	x.snapshot = x.snapshot.Next(x.snapshot.Version()+1, pool)
	x.event("pool: "+describePool(pool), func() {
		x.board.SetSnapshot(x.snapshot)
		x.m.SetBackends(x.now, ready, nil)
	}, func() {
		x.has(pool)
		x.shares.regroup()
		for id := range x.foreign {
			if e := x.endpoint(scheduling.EndpointID(id)); e == nil || !e.Ready {
				x.foreign[id] = stock.Amount{}
			}
		}
	})
}
