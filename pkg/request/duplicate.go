package request

import (
	"fmt"
	"math/bits"
	"strings"
)

// Weir trusts the headers with the tenant, tier, class, deadline, model and cost of a request, because a gateway sets
// or strips them. If such a header comes twice, one of the two may be the client's, and Weir cannot tell which, so it
// refuses the request (ADR 0017). Envoy joins the values of a few known headers, such as its own deadline, with commas.
// If a value cannot contain a comma, a comma counts as a second header.

// forgiving reports whether a class header may come twice: clients may send SMG's and Dynamo's class headers, and the
// first value counts.
func forgiving(header string) bool {
	header = strings.ToLower(header)
	return header == "x-smg-priority" || strings.HasPrefix(header, "x-dynamo-")
}

// sortHeaders derives single and scalar, after every configured header has its slot.
func (r *Rules) sortHeaders() {
	add := func(set *Slots, s slot) {
		if s != noSlot {
			*set |= 1 << s
		}
	}
	for i := range r.flow {
		if r.flow[i].kind == fromHeader {
			add(&r.single, r.flow[i].slot)
		}
	}
	for i := range r.userIn {
		if r.userIn[i].kind == fromHeader {
			add(&r.single, r.userIn[i].slot)
		}
	}
	for i := range r.roleIn {
		if r.roleIn[i].kind == fromHeader {
			add(&r.single, r.roleIn[i].slot)
		}
	}
	for _, s := range r.objectiveIn {
		add(&r.single, s)
	}
	if !forgiving(r.cfg.Criticality.Header) {
		add(&r.single, r.classHeader)
	}
	r.policyClass.single(&r.names, func(s slot) { add(&r.single, s) })
	add(&r.single, r.requirementsHeader)
	add(&r.scalar, r.modelHeader)
	add(&r.scalar, r.costHeader)
	add(&r.scalar, r.inputHeader)
	for _, d := range r.deadlines {
		add(&r.scalar, d.slot)
	}
	r.single |= r.scalar
}

// ambiguous returns the error of a request with a repeated trusted header, or nil.
func (r *Rules) ambiguous(h *Headers) error {
	if twice := h.twice & r.single; twice != 0 {
		name := r.names.names[bits.TrailingZeros64(uint64(twice))]
		return malformed(name, fmt.Sprintf("The header %q is there more than once.", name))
	}
	for rest := h.present & r.scalar; rest != 0; rest &= rest - 1 {
		s := bits.TrailingZeros64(uint64(rest))
		if strings.Contains(h.values[s], ",") {
			name := r.names.names[s]
			return malformed(name, fmt.Sprintf("The header %q has more than one value.", name))
		}
	}
	return nil
}
