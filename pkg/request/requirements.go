package request

import (
	"fmt"
	"strings"
)

// Requirements are the demands on a request's endpoint, as a trusted header states them: a list, separated by commas,
// of NAME=VALUE, a label that it must have, and of ~TAINT, a taint that it may have. An endpoint with a taint takes
// only the requests that tolerate all of its taints.
type Requirements struct {
	Labels    []Label
	Tolerates []string
}

// Label is a name with a value.
type Label struct{ Name, Value string }

// maxRequirements bounds the entries of a list.
const maxRequirements = 16

// readRequirements reads the header, which is a trusted one: an unreadable part is an error, for a request that went
// anywhere would go where it must not.
func (q *Request) readRequirements(h *Headers) error {
	text := h.values[q.rules.requirementsHeader]
	if text == "" {
		return nil
	}
	name := q.rules.names.names[q.rules.requirementsHeader]
	need := &q.Requirements
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		label, value, isLabel := strings.Cut(entry, "=")
		taint, isTaint := strings.CutPrefix(entry, "~")
		switch {
		case entry == "":
		case isTaint && taint != "":
			need.Tolerates = append(need.Tolerates, strings.TrimSpace(taint))
		case isLabel && label != "" && !isTaint:
			need.Labels = append(need.Labels, Label{strings.TrimSpace(label), strings.TrimSpace(value)})
		default:
			return malformed(name, fmt.Sprintf("The header %q must have NAME=VALUE and ~TAINT, separated by commas.", name))
		}
		if len(need.Labels)+len(need.Tolerates) > maxRequirements {
			return malformed(name, fmt.Sprintf("The header %q has more than %d entries.", name, maxRequirements))
		}
	}
	return nil
}
