package recording

import (
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// crowd is the watchers of one player.
type crowd []watcher

func (c crowd) arrived(r *request, a *dispatch.Arrival) {
	for _, w := range c {
		w.arrived(r, a)
	}
}

func (c crowd) refusedEarly(r *dispatch.Refusal) {
	for _, w := range c {
		w.refusedEarly(r)
	}
}

func (c crowd) event() {
	for _, w := range c {
		w.event()
	}
}

func (c crowd) about(r *request) {
	for _, w := range c {
		w.about(r)
	}
}

func (c crowd) completed(r *dispatch.Waiter, cost fairqueue.Cost) {
	for _, w := range c {
		w.completed(r, cost)
	}
}

func (c crowd) expected(r *dispatch.Waiter, cost fairqueue.Cost) {
	for _, w := range c {
		w.expected(r, cost)
	}
}

func (c crowd) pool(ready []stock.Backend, foreign []stock.Foreign) {
	for _, w := range c {
		w.pool(ready, foreign)
	}
}

func (c crowd) reported(e dispatch.Endpoint, s dispatch.Signals) {
	for _, w := range c {
		w.reported(e, s)
	}
}

func (c crowd) configured(d dispatch.Config, s scheduling.Config) {
	for _, w := range c {
		w.configured(d, s)
	}
}

func (c crowd) decided(r *request, v ruling) {
	for _, w := range c {
		w.decided(r, v)
	}
}
