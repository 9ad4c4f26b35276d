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
	if changes := p.foreign(); len(changes) > 0 {
		p.controller.SetForeign(changes)
	}
}

// foreign returns what others have in flight at the ready endpoints, where it is not what the controller knows. The
// caller holds mu, and tells the controller.
func (p *Pool) foreign() (changes []stock.Foreign) {
	if p.replication == nil {
		return nil
	}
	counts := p.replication.replicas.Stock(time.Now(), func() []leader.Endpoint { return shares(p.published, &p.flow.Stock) })
	if counts == nil && len(p.told) == 0 {
		return nil
	}
	changes, p.told = toTell(p.published, counts, p.told)
	total := 0
	for _, n := range p.told {
		total += n
	}
	p.foreignTotal.Store(int64(total))
	return changes
}

// shares returns the endpoints of a snapshot in its order, each with its part of the upper bound: 0 if it is not ready.
func shares(snapshot *scheduling.Snapshot, bounds *stock.Config) []leader.Endpoint {
	endpoints := make([]leader.Endpoint, snapshot.Len())
	for i := range endpoints {
		e := snapshot.At(i)
		endpoints[i].Key = e.Key
		if e.Ready {
			endpoints[i].Bound = int64(bounds.BoundsOf(backendOf(&e)).Requests.Upper)
		}
	}
	return endpoints
}

// toTell compares the counts of a snapshot's endpoints, nil if all are 0, with what the controller was told: it returns
// what is different at the ready ones, and what the controller knows then. An endpoint that is not ready counts as told
// of nothing, since the controller forgets it.
func toTell(
	snapshot *scheduling.Snapshot, counts []int, told map[scheduling.EndpointID]int,
) (changes []stock.Foreign, now map[scheduling.EndpointID]int) {
	now = map[scheduling.EndpointID]int{}
	for i := range snapshot.Len() {
		e := snapshot.At(i)
		if !e.Ready {
			continue
		}
		n := 0
		if counts != nil {
			n = counts[i]
		}
		if n != told[e.ID] {
			changes = append(changes, stock.Foreign{ID: stock.BackendID(e.ID), Held: stock.Amount{Requests: n}})
		}
		if n != 0 {
			now[e.ID] = n
		}
	}
	return changes, now
}
