package app

import (
	"time"

	"github.com/weir-epp/weir/pkg/leader"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// tellInFlight returns what this process has in flight, for its record. Under the controller's lock it only copies.
func (p *Pool) tellInFlight() leader.InFlight {
	var total int
	loads := p.loadsAnd(func() { total = p.board.Total() })
	f := leader.InFlight{Total: min(total, leader.MaxInFlight), ByEndpoint: map[string]int{}}
	for _, l := range loads {
		if l.InFlight > 0 {
			f.ByEndpoint[l.Key] = l.InFlight
		}
	}
	return f
}

// foreignChanged is called when what others have in flight may have changed.
func (p *Pool) foreignChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tellForeign()
}

// tellForeign tells the controller what others have in flight at each ready endpoint, where that has changed. An endpoint
// that was not ready in between is told anew: the ledger has forgotten what was there. The caller holds mu.
func (p *Pool) tellForeign() {
	if p.replication == nil {
		return
	}
	var loads []load
	counts := p.replication.replicas.Stock(time.Now(), func() []leader.Endpoint {
		loads = p.loads()
		endpoints := make([]leader.Endpoint, len(loads))
		for i, l := range loads {
			endpoints[i].Key = l.Key
			if l.Ready {
				endpoints[i].Bound = l.UpperBound
			}
		}
		return endpoints
	})
	told, total := map[scheduling.EndpointID]int{}, int64(0)
	for i, n := range counts {
		e := loads[i]
		if !e.Ready || n == 0 {
			continue
		}
		told[e.ID], total = n, total+int64(n)
		if p.told[e.ID] != n {
			p.controller.SetForeign(stock.BackendID(e.ID), stock.Amount{Requests: n})
		}
	}
	for id := range p.told {
		if told[id] == 0 {
			p.controller.SetForeign(stock.BackendID(id), stock.Amount{})
		}
	}
	p.told = told
	p.foreignTotal.Store(total)
}
