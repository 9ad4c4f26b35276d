package request

import (
	"math"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/invalid"
)

// Hint is one of the hints in a body (nvext.agent_hints), by its name there.
type Hint string

// The hints that may be taken from bodies.
const (
	HintPriority           Hint = "priority"            // the priority, unless a header states it
	HintStrictPriority     Hint = "strict_priority"     // the strict priority, likewise
	HintOutputTokens       Hint = "osl"                 // the client's expected length of the answer
	HintLatencySensitivity Hint = "latency_sensitivity" // seconds, used as the priority if none is stated
)

// maxHints is the number of hints.
const maxHints = 4

func checkHints(ps *invalid.Problems, at invalid.Path, hints []string) {
	if len(hints) > maxHints {
		checkCount(ps, at, len(hints), "hints", maxHints)
		return
	}
	var names invalid.Names
	for i, hint := range hints {
		if names.Check(ps, at.At(i), hint) {
			oneOf(ps, at.At(i), Hint(hint), HintPriority, HintStrictPriority, HintOutputTokens, HintLatencySensitivity)
		}
	}
}

// hints are the hints that count.
type hints struct{ priority, strict, output, latency bool }

func compileHints(names []string) (h hints) {
	for _, name := range names {
		switch Hint(name) {
		case HintPriority:
			h.priority = true
		case HintStrictPriority:
			h.strict = true
		case HintOutputTokens:
			h.output = true
		case HintLatencySensitivity:
			h.latency = true
		}
	}
	return h
}

// stated returns the hints that no header overrides.
func (r *Rules) stated(h *Headers) hints {
	left := r.hints
	if h.present.has(r.policyClass.priority) && r.policyClass.priority != noSlot {
		left.priority, left.latency = false, false
	}
	if h.present.has(r.policyClass.strict) && r.policyClass.strict != noSlot {
		left.strict = false
	}
	return left
}

// asksForHints reports whether the body may have hints that no header overrides.
func (q *Request) asksForHints() bool { return q.hints != hints{} && q.hasPrompt() }

// hint takes the hints of a body, each up to its limit.
func (q *Request) hint(h *body.Hints) {
	cfg := &q.rules.cfg.PolicyClass
	if q.hints.output && h.OutputTokens > 0 {
		q.Size.Expected = h.OutputTokens
	}
	priority, strict := int64(0), int64(0)
	switch {
	case q.hints.priority && h.Priority != body.Absent:
		priority = h.Priority
	case q.hints.latency && h.LatencySensitivity != body.Absent:
		priority = h.LatencySensitivity
	}
	if q.hints.strict {
		strict = h.StrictPriority
	}
	if priority <= 0 && strict <= 0 {
		return
	}
	if q.Class == nil {
		q.Class = new(fairqueue.Path)
	}
	if priority > 0 {
		q.Class.Priority = int(min(priority, int64(cfg.MaxPriority), math.MaxInt32))
	}
	if strict > 0 {
		q.Class.Strict = int(min(strict, int64(cfg.MaxStrictPriority)))
	}
}
