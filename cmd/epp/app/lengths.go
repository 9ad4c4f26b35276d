package app

import (
	"maps"
	"math"

	"github.com/weir-epp/weir/pkg/datastore/scrape"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// lengths are the ready endpoints' stated longest contexts, in tokens. It is immutable.
type lengths struct {
	of    map[scheduling.EndpointID]int64
	least int64
}

// lists takes the content of an endpoint's list of models.
func (p *Pool) lists(id scheduling.EndpointID, listing scrape.Listing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adapters.list(id, listing.Adapters)
	if p.capabilities.state(id, listing.Lacks) && p.stored != nil {
		p.publish(p.capabilities.of(p.stored))
	}
	longest := listing.Longest
	if known := p.lengths.Load(); known == nil && longest == 0 || known != nil && known.of[id] == longest {
		return
	}
	p.setLengths(func(of map[scheduling.EndpointID]int64) {
		if of[id] = longest; longest == 0 {
			delete(of, id)
		}
	})
}

// setLengths changes the lengths. The caller holds mu.
func (p *Pool) setLengths(change func(of map[scheduling.EndpointID]int64)) {
	next := &lengths{of: map[scheduling.EndpointID]int64{}, least: math.MaxInt64}
	if known := p.lengths.Load(); known != nil {
		maps.Copy(next.of, known.of)
	}
	change(next.of)
	for _, n := range next.of {
		next.least = min(next.least, n)
	}
	p.lengths.Store(next)
}

// forgetLengths forgets the lengths of endpoints that are not ready. The caller holds mu.
func (p *Pool) forgetLengths(ready map[scheduling.EndpointID]bool) {
	known := p.lengths.Load()
	if known == nil {
		return
	}
	for id := range known.of {
		if !ready[id] {
			p.setLengths(func(of map[scheduling.EndpointID]int64) {
				maps.DeleteFunc(of, func(id scheduling.EndpointID, _ int64) bool { return !ready[id] })
			})
			return
		}
	}
}

// Confine implements extproc.Picker. Most requests fit everywhere, and cost one comparison.
func (p picker) Confine(model string, subset request.Subset, length extproc.Length) (*request.Subset, error) {
	known := p.lengths.Load()
	if known == nil || length.Likely <= known.least {
		return nil, nil //nolint:nilnil // it may go anywhere
	}
	var allowed map[scheduling.HostPort]bool
	if subset.Set {
		allowed = make(map[scheduling.HostPort]bool, len(subset.Members))
		for _, m := range subset.Members {
			allowed[scheduling.ParseHostPort(m)] = true
		}
	}
	snapshot := p.prepared.Load().snapshot
	var fitting, longest, readers []string // readers: prefill engines where it may fit
	most, others := int64(0), false        // others: endpoints where it may fit, or of unknown length
	for i := range snapshot.Len() {
		e := snapshot.At(i)
		at := scheduling.ParseHostPort(e.Address)
		if !e.Serves(model) || allowed != nil && !allowed[at] && !allowed[scheduling.HostPort{Host: at.Host}] {
			continue
		}
		limit, stated := known.of[e.ID]
		switch {
		case !e.Work.Serves():
			if e.Ready && (!stated || length.Likely <= limit) {
				readers = append(readers, e.Address)
			}
		case !e.Ready || !stated:
			others = true
			if e.Ready {
				fitting = append(fitting, e.Address)
			}
		case length.Likely <= limit:
			fitting = append(fitting, e.Address)
		case limit > most:
			most, longest = limit, append(longest[:0], e.Address)
		case limit == most:
			longest = append(longest, e.Address)
		}
	}
	switch {
	case most == 0: // it fits at all its endpoints
		return nil, nil //nolint:nilnil // the same
	case len(fitting) > 0:
		return &request.Subset{Set: true, Members: append(fitting, readers...)}, nil
	case !others && length.Least > most:
		return nil, &extproc.TooLongError{Least: length.Least, Most: most}
	case others:
		return nil, nil //nolint:nilnil // an unready one may become ready
	default: // it may fit after all, by the engine's count of tokens
		return &request.Subset{Set: true, Members: append(longest, readers...)}, nil
	}
}
