package dispatch

import (
	"fmt"
	"math"
	"slices"
)

// isHere reports whether a tenant has a request here.
func (w *world) isHere(tenant string) bool {
	return slices.ContainsFunc(w.subjects, func(s *subject) bool { return s.kind.key() == tenant && (s.waits() || s.holds()) })
}

// mostOf returns the cap on the leases of a request's tenant: the least cap of this request's role and of all roles of
// its requests since it last had none here; 0: no cap.
func (w *world) mostOf(s *subject) int {
	of := func(o *subject) int {
		most := w.config.MaxInFlightPerFlow
		if r := w.config.Roles[o.kind.role()]; r.MaxInFlight > 0 {
			most = r.MaxInFlight
		}
		if most == 0 {
			return math.MaxInt
		}
		return most
	}
	least := of(s)
	if w.isHere(s.kind.key()) {
		for _, o := range w.subjects[w.spells[s.kind.key()]:] {
			if o.kind.key() == s.kind.key() {
				least = min(least, of(o))
			}
		}
	}
	if least == math.MaxInt {
		return 0
	}
	return least
}

// appendRoles appends the roles of waiting requests, of requests that may wait again, and of tenants.
func (w *world) appendRoles(b []byte) []byte {
	if len(w.config.Roles) == 0 {
		return b
	}
	for _, s := range w.subjects {
		if s.waits() || s.w.stage == StageGranted {
			b = append(append(b, s.kind.flow...), byte(s.w.stage))
		}
	}
	for _, t := range w.flows.inOrder() {
		b = fmt.Append(b, t.key, t.role, t.besides)
	}
	return b
}
