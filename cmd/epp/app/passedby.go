package app

import (
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// passedByAfter is for how long engines must have requests of others, by three scrapes at the start and by every later one,
// while Weir has no stream, until a proxy counts as one that passes Weir by.
const passedByAfter = 3 * time.Second

// noteStrangers notes since when an engine has had requests of others while Weir had no stream. The caller holds mu.
func (p *Pool) noteStrangers(id scheduling.EndpointID, foreign int, now time.Time) {
	switch _, known := p.strangers[id]; {
	case foreign == 0 || p.server.Streams() > 0:
		delete(p.strangers, id)
	case known:
	default:
		if p.strangers == nil {
			p.strangers = map[scheduling.EndpointID]time.Time{}
		}
		p.strangers[id] = now
	}
}

// passedBy returns the addresses of engines that have had requests for passedByAfter which neither Weir nor, by its record,
// another replica has sent, while Weir had no stream.
func (p *Pool) passedBy(now time.Time) (engines []string) {
	if p.server.Streams() > 0 {
		return nil
	}
	last := p.server.LastStream()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.recorded {
		return nil
	}
	for i := range p.published.Len() {
		e := p.published.At(i)
		if since, known := p.strangers[e.ID]; known && now.Sub(since) >= passedByAfter && last.Before(since) {
			engines = append(engines, e.Address)
		}
	}
	return engines
}
