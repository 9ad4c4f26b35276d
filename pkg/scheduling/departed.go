package scheduling

import "slices"

// MaxDeparted is the number of models that a snapshot remembers after the last endpoint that listed them has left.
const MaxDeparted = 1024

// departed are the models listed by an earlier snapshot and not by this one, in order of departure. Only a source of
// endpoints adds to them, never a request. It is immutable.
type departed struct {
	order []string
	set   map[string]struct{}
}

// HasListed reports whether an endpoint has listed the model before, but none does now. The last MaxDeparted departed
// models are remembered.
func (s *Snapshot) HasListed(model string) bool {
	if s.departed == nil {
		return false
	}
	_, ok := s.departed.set[model]
	return ok
}

// departedSince returns the departed models of a snapshot that comes after s.
func (s *Snapshot) departedSince(before *Snapshot) *departed {
	var left []string
	for model := range before.byModel {
		if !s.Lists(model) {
			left = append(left, model)
		}
	}
	if len(left) == 0 && (before.departed == nil || !slices.ContainsFunc(before.departed.order, s.Lists)) {
		return before.departed
	}
	slices.Sort(left)
	d := &departed{}
	if before.departed != nil {
		d.order = slices.DeleteFunc(slices.Clone(before.departed.order), s.Lists)
	}
	d.order = append(d.order, left...)
	d.order = slices.Clone(d.order[max(0, len(d.order)-MaxDeparted):]) // a copy, so that forgotten models take no memory
	d.set = make(map[string]struct{}, len(d.order))
	for _, model := range d.order {
		d.set[model] = struct{}{}
	}
	return d
}
