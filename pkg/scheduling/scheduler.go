package scheduling

import (
	"fmt"
	"slices"
)

// Scheduler is a Config made ready for use. It is immutable and may be used by any number of goroutines.
type Scheduler struct {
	config        Config
	filtersModel  bool
	filtersSubset bool
	live          []weighted
	request       []weighted
}

// New builds the scheduler of a configuration, or returns what Validate says of it.
func New(config Config) (*Scheduler, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.Filters, config.Scorers = slices.Clone(config.Filters), slices.Clone(config.Scorers)
	s := &Scheduler{
		config:        config,
		filtersModel:  slices.Contains(config.Filters, FilterModel),
		filtersSubset: slices.Contains(config.Filters, FilterSubset),
	}
	for _, c := range config.Scorers {
		chosen, _ := scorerByName(c.Name)
		w := weighted{scorer: chosen, weight: int64(c.Weight)}
		if chosen.live != nil {
			s.live = append(s.live, w)
		} else {
			s.request = append(s.request, w)
		}
	}
	return s, nil
}

// Prepare does all that depends on the request and the snapshot alone. It fails with ErrSubsetEmpty,
// ErrSubsetForeign or ErrModelUnknown (wrapped with the value) when no endpoint known now can ever serve the request.
// In an empty pool, and while the endpoints it may use are not ready, it succeeds: such a request waits.
func (s *Scheduler) Prepare(snap *Snapshot, ask Ask) (*Query, error) {
	q := &Query{constraint: constraint{model: ask.Model}}
	if s.filtersSubset && ask.Subset.Set {
		q.confined, q.entries = true, ask.Subset.canonical()
		if len(q.entries) == 0 {
			return nil, fmt.Errorf("scheduling: preparing: %w", ErrSubsetEmpty)
		}
	}
	q.lane = s.laneOf(snap, &q.constraint)
	q.renew(s, snap)
	if len(q.reach.positions) > 0 || snap.Len() == 0 {
		return q, nil
	}
	if q.confined && len(snap.named(q.entries)) == 0 {
		return nil, fmt.Errorf("scheduling: preparing: %w: %s", ErrSubsetForeign, abridged(q.entries))
	}
	return nil, fmt.Errorf("scheduling: preparing: %w %q", ErrModelUnknown, q.model)
}

// abridged shows the first entries: a client may have sent any number.
func abridged(entries []HostPort) string {
	const shown = 3
	if len(entries) > shown {
		return fmt.Sprintf("%q and %d more", entries[:shown], len(entries)-shown)
	}
	return fmt.Sprintf("%q", entries)
}

// requestTotals sums the scorers that depend on the request, by position; nil if there are none.
func (s *Scheduler) requestTotals(snap *Snapshot, c *constraint, r *reach) []Total {
	if len(s.request) == 0 {
		return nil
	}
	totals := make([]Total, snap.Len())
	for _, p := range r.ready {
		for _, w := range s.request {
			totals[p] += w.of(w.request(c, &snap.members[p].Endpoint))
		}
	}
	return totals
}
