package scheduling

import (
	"fmt"
	"slices"
)

// Scheduler is a Config made ready for use: Prepare may be called by any number of goroutines. What its scorers remember
// belongs to the one board that it is given to.
type Scheduler struct {
	config        Config
	filtersModel  bool
	filtersSubset bool
	picker        picker
	live          []weighted
	request       []weighted
	placed        []func(*Query, EndpointID)
	completed     []func(EndpointID)
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
	s.picker, _ = pickerByName(config.Picker)
	for _, c := range config.Scorers {
		chosen, _ := scorerByName(c.Name)
		s.add(weighted{scorer: chosen.make(), name: c.Name, weight: int64(c.Weight)})
	}
	return s, nil
}

// add takes a scorer in.
func (s *Scheduler) add(w weighted) {
	if w.live != nil {
		s.live = append(s.live, w)
	}
	if w.request != nil {
		s.request = append(s.request, w)
	}
	if w.placed != nil {
		s.placed = append(s.placed, w.placed)
	}
	if w.completed != nil {
		s.completed = append(s.completed, w.completed)
	}
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
		q.text = subsetLane(q.entries)
	}
	q.lane = s.laneName(snap, &q.constraint)
	q.ratings = s.rated(snap, &q.constraint)
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
