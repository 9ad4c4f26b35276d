package scheduling

import (
	"fmt"
	"slices"
)

// Scheduler is a compiled Config. Prepare may be called by any number of goroutines.
type Scheduler struct {
	config        Config
	filtersModel  bool
	filtersSubset bool
	by            comparison
}

// New returns the scheduler of a configuration, or the errors of Validate.
func New(config Config) (*Scheduler, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.Filters = slices.Clone(config.Filters)
	s := &Scheduler{
		config:        config,
		filtersModel:  slices.Contains(config.Filters, FilterModel),
		filtersSubset: slices.Contains(config.Filters, FilterSubset),
	}
	s.by = config.comparison()
	return s, nil
}

// Prepare does all work that depends only on the request and the snapshot. If no endpoint known now can ever serve the
// request, it fails with ErrSubsetEmpty, ErrSubsetForeign, ErrModelElsewhere, ErrModelDeparted or ErrModelUnknown
// (wrapped with the value), or an UnmetError. In an empty pool, or if the request's endpoints are not ready, it
// succeeds: such a request waits.
func (s *Scheduler) Prepare(snap *Snapshot, ask Ask) (*Query, error) {
	q := &Query{constraint: constraint{model: ask.Model, adapter: ask.Adapter && ask.Model != "", needs: ask.Needs & AllNeeds}}
	if s.filtersSubset && ask.Subset.Set {
		q.confined, q.entries = true, ask.Subset.canonical()
		if len(q.entries) == 0 {
			return nil, fmt.Errorf("scheduling: preparing: %w", ErrSubsetEmpty)
		}
		q.text = subsetLane(q.entries)
	}
	q.renew(s, snap)
	if len(q.reach.positions) > 0 || len(snap.whole.positions) == 0 {
		return q, nil
	}
	if needs := s.needsOf(snap, &q.constraint); needs != 0 {
		without := q.constraint
		without.needs = 0
		if base := s.reachOf(snap, &without); len(base.positions) > 0 {
			return nil, fmt.Errorf("scheduling: preparing: %w", s.unmet(snap, base, needs))
		}
	}
	if q.confined && len(newReach(snap, snap.named(q.entries)).positions) == 0 {
		return nil, fmt.Errorf("scheduling: preparing: %w: %s", ErrSubsetForeign, abridged(q.entries))
	}
	if len(snap.anyModel.positions) > 0 || snap.Lists(q.model) {
		return nil, fmt.Errorf("scheduling: preparing: %w %q", ErrModelElsewhere, q.model)
	}
	if snap.HasListed(q.model) {
		return nil, fmt.Errorf("scheduling: preparing: %w %q", ErrModelDeparted, q.model)
	}
	return nil, fmt.Errorf("scheduling: preparing: %w %q", ErrModelUnknown, q.model)
}

// abridged returns the first entries: a client may have sent any number.
func abridged(entries []HostPort) string {
	const shown = 3
	if len(entries) > shown {
		return fmt.Sprintf("%q and %d more", entries[:shown], len(entries)-shown)
	}
	return fmt.Sprintf("%q", entries)
}
