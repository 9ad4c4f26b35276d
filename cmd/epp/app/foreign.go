package app

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/leader"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// tellInFlight returns this process's requests in flight, for its record. Under the controller's lock it only copies.
func (p *Pool) tellInFlight() leader.InFlight {
	var total int
	loads := p.loadsAnd(func() { total = p.board.Total() })
	return inFlightOf(total, loads)
}

// inFlightOf returns a record's content for a total of requests, with the loads of the pool's endpoints.
func inFlightOf(total int, loads []load) leader.InFlight {
	f := leader.InFlight{Total: min(total, leader.MaxInFlight), ByEndpoint: map[string]int{}}
	for _, l := range loads {
		if l.InFlight > 0 {
			f.ByEndpoint[l.Key] = l.InFlight
		}
		if l.InFlight > 0 && l.Tokens > 0 {
			if f.TokensByEndpoint == nil {
				f.TokensByEndpoint = map[string]int64{}
			}
			f.TokensByEndpoint[l.Key] = min(l.Tokens, leader.MaxTokens)
			f.Tokens = min(f.Tokens+l.Tokens, leader.MaxTokens)
		}
	}
	return f
}

// foreignChanged is called when other replicas' requests in flight may have changed.
func (p *Pool) foreignChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if changes := p.foreign(); len(changes) > 0 {
		p.controller.SetForeign(changes)
	}
}

// foreign returns the changed foreign stock at the ready endpoints, from other replicas' records or engines' reports.
// The caller holds mu, and passes it to the controller.
func (p *Pool) foreign() (changes []stock.Foreign) {
	var counts []leader.Held
	if p.replication != nil {
		counts = p.replication.replicas.Stock(time.Now(), func() []leader.Endpoint { return shares(p.published, &p.flow.Stock) })
	}
	p.recorded = slices.ContainsFunc(counts, func(h leader.Held) bool { return h.Requests > 0 })
	counts = withHeard(p.published, counts, p.heard)
	if counts == nil && len(p.told) == 0 {
		return nil
	}
	changes, p.told = toTell(p.published, counts, p.told)
	requests, tokens := int64(0), int64(0)
	for _, h := range p.told {
		requests += int64(h.Requests)
		tokens += h.Tokens
	}
	p.foreignTotal.Store(requests)
	p.foreignTokens.Store(tokens)
	return changes
}

// shares returns the endpoints of a snapshot in its order, each with its part of the upper bounds: 0 if it is not ready.
func shares(snapshot *scheduling.Snapshot, bounds *stock.Config) []leader.Endpoint {
	endpoints := make([]leader.Endpoint, snapshot.Len())
	for i := range endpoints {
		e := snapshot.At(i)
		endpoints[i].Key = e.Key
		if e.Ready {
			most := bounds.BoundsOf(backendOf(&e))
			endpoints[i].Bound = int64(most.Requests.Upper)
			endpoints[i].Most = leader.Held{Requests: most.Requests.Upper.Ceil(), Tokens: int64(most.Tokens.Upper.Ceil())}
		}
	}
	return endpoints
}

// toTell compares the counts of a snapshot's endpoints, nil if all are 0, with the values last passed to the
// controller. It returns the differences at ready endpoints, and the controller's values after them. An endpoint that
// is not ready has the value 0 there, since the controller forgets it.
func toTell(
	snapshot *scheduling.Snapshot, counts []leader.Held, told map[scheduling.EndpointID]leader.Held,
) (changes []stock.Foreign, now map[scheduling.EndpointID]leader.Held) {
	now = map[scheduling.EndpointID]leader.Held{}
	for i := range snapshot.Len() {
		e := snapshot.At(i)
		if !e.Ready {
			continue
		}
		var h leader.Held
		if counts != nil {
			h = counts[i]
		}
		if h != told[e.ID] {
			held := stock.Amount{Requests: h.Requests, Tokens: stock.Tokens(h.Tokens)}
			changes = append(changes, stock.Foreign{ID: stock.BackendID(e.ID), Held: held})
		}
		if h != (leader.Held{}) {
			now[e.ID] = h
		}
	}
	return changes, now
}
