package app

import (
	"slices"

	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// isTainted reports whether an endpoint of the snapshot has a taint, so that it excludes requests without requirements.
func isTainted(s *scheduling.Snapshot) bool {
	for i := range s.Len() {
		if e := s.At(i); len(e.Taints) > 0 {
			return true
		}
	}
	return false
}

// Require implements extproc.Picker. With a tainted endpoint, or a required label, it takes time in proportion to the
// endpoints; otherwise none. A request keeps the endpoints that met its requirements at its arrival.
func (p picker) Require(subset request.Subset, need *request.Requirements) request.Subset {
	now := p.prepared.Load()
	if len(need.Labels) == 0 && !now.tainted {
		return subset
	}
	allowed := membersOf(subset)
	meeting := request.Subset{Set: true}
	all := true
	for i := range now.snapshot.Len() {
		e := now.snapshot.At(i)
		at := scheduling.ParseHostPort(e.Address)
		if allowed != nil && !allowed[at] && !allowed[scheduling.HostPort{Host: at.Host}] {
			continue
		}
		if meets(&e, need) {
			meeting.Members = append(meeting.Members, e.Address)
		} else {
			all = false
		}
	}
	if all {
		return subset
	}
	return meeting
}

// meets reports whether an endpoint has the required labels, and only tolerated taints.
func meets(e *scheduling.Endpoint, need *request.Requirements) bool {
	for _, l := range need.Labels {
		if value, has := e.Labels[l.Name]; !has || value != l.Value {
			return false
		}
	}
	return !slices.ContainsFunc(e.Taints, func(taint string) bool { return !slices.Contains(need.Tolerates, taint) })
}

// membersOf returns the members of a subset; nil if it is unset.
func membersOf(subset request.Subset) map[scheduling.HostPort]bool {
	if !subset.Set {
		return nil
	}
	members := make(map[scheduling.HostPort]bool, len(subset.Members))
	for _, m := range subset.Members {
		members[scheduling.ParseHostPort(m)] = true
	}
	return members
}
