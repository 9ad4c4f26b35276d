package request

import (
	"math"
	"strconv"
	"strings"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/invalid"
)

// PolicyClass has the sources of a request's class within its tier, and of its priorities within the class.
type PolicyClass struct {
	// Headers are the headers with a class's name, at most 2; the first one present counts.
	Headers []string
	// PriorityHeader and StrictPriorityHeader name the headers with the two priorities, whole numbers; "" is none.
	PriorityHeader, StrictPriorityHeader string
	// Hints lists the Hints that count in a body; headers take precedence.
	Hints []string
	// MaxPriority caps a request's priority. 0 to 2^31 − 1.
	MaxPriority int
	// MaxStrictPriority caps a request's strict priority. 0 to fairqueue.MaxStrict.
	MaxStrictPriority int
}

// maxClassHeaders is the largest number of class headers. Every request has a slot for each of them.
const maxClassHeaders = 2

func (p *PolicyClass) check(ps *invalid.Problems, at invalid.Path) {
	checkCount(ps, at.At("Headers"), len(p.Headers), "headers", maxClassHeaders)
	var names invalid.Names
	for i, name := range p.Headers {
		if checkHeader(ps, at.At("Headers", i), name) {
			names.Check(ps, at.At("Headers", i), strings.ToLower(name))
		}
	}
	checkOptionalHeader(ps, at.At("PriorityHeader"), p.PriorityHeader)
	checkOptionalHeader(ps, at.At("StrictPriorityHeader"), p.StrictPriorityHeader)
	checkHints(ps, at.At("Hints"), p.Hints)
	invalid.Within(ps, at.At("MaxPriority"), p.MaxPriority, 0, math.MaxInt32)
	invalid.Within(ps, at.At("MaxStrictPriority"), p.MaxStrictPriority, 0, fairqueue.MaxStrict)
}

// policyClass has the slots of these headers.
type policyClass struct {
	class            []slot
	priority, strict slot
}

func (r *Rules) compilePolicyClass(p *PolicyClass) {
	for _, name := range p.Headers {
		r.policyClass.class = append(r.policyClass.class, r.names.add(name))
	}
	r.policyClass.priority = r.optional(p.PriorityHeader)
	r.policyClass.strict = r.optional(p.StrictPriorityHeader)
	r.hints = compileHints(p.Hints)
}

// single calls add with each of these headers that must not be repeated. Clients may repeat Dynamo's, as with Dynamo.
func (p *policyClass) single(names *headerNames, add func(slot)) {
	for _, s := range append([]slot{p.priority, p.strict}, p.class...) {
		if s != noSlot && !forgiving(names.names[s]) {
			add(s)
		}
	}
}

// classOf returns the class and the priorities that a request names, with its role and its user; nil if there are none.
func (r *Rules) classOf(h *Headers, role, user string) *fairqueue.Path {
	p := fairqueue.Path{
		Role:     role,
		Class:    strings.TrimSpace(h.first(r.policyClass.class...)),
		Priority: min(whole(h.values[r.policyClass.priority]), r.cfg.PolicyClass.MaxPriority),
		Strict:   min(whole(h.values[r.policyClass.strict]), r.cfg.PolicyClass.MaxStrictPriority),
	}
	if len(p.Class) > fairqueue.MaxClassName {
		p.Class = "" // no class has this name; otherwise the waiter and the recording would keep it
	}
	if user != "" {
		p.Under = []string{user}
	} else if p.Class == "" && p.Priority == 0 && p.Strict == 0 && p.Role == "" {
		return nil
	}
	return &p
}

// Classify resolves the ring and the class of a request by its uncached tokens, among the classes of its model, or else
// those for all other models. It is called once, after the value is complete.
func (q *Request) Classify(uncached int64) {
	in, r := "", q.rules.ring
	if own := q.rules.modelRings[q.Model]; own != nil {
		in, r = q.Model, own
	}
	named := ""
	if q.Class != nil {
		named = q.Class.Class
	}
	q.UnknownClass = named != "" && len(r.explicit)+len(r.families) > 0 && !r.knows(named)
	class := r.class(named, uncached)
	if class == named && in == "" {
		return
	}
	if q.Class == nil {
		q.Class = new(fairqueue.Path)
	}
	q.Class.Ring, q.Class.Class = in, class
}

// whole reads a whole number. Negative numbers and other text give 0; too large a number gives the largest int.
func whole(v string) int {
	if v == "" {
		return 0 // avoids allocating ParseInt's error
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32)
	switch {
	case n < 0:
		return 0
	case err != nil && n != math.MaxInt32:
		return 0
	}
	return int(n)
}
