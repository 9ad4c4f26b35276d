package request

import (
	"fmt"
	"strings"
)

// Requirements are a request's requirements on its endpoint, from a trusted header: a comma-separated list of
// NAME=VALUE, a label that the endpoint must have, and ~TAINT, a taint that it may have. An endpoint with taints takes
// only requests that tolerate all of them.
type Requirements struct {
	Labels    []Label
	Tolerates []string
}

// Label is a name with a value.
type Label struct{ Name, Value string }

// maxRequirements bounds the entries of a list.
const maxRequirements = 16

// readRequirements reads the trusted header. An unreadable part is an error, since the request could otherwise go to a
// forbidden endpoint.
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
