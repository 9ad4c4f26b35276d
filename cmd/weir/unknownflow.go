package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/status"
)

// flowsNamed bounds the flows that a message names.
const flowsNamed = 5

// unknownFlow returns a message if no replica that answers has a flow with this part of a name, and which ones it has; "" if
// there is such a flow, or none answers.
func unknownFlow(ctx context.Context, addresses []string, part string) string {
	q := status.DefaultQuery()
	q.Flow = part
	if rows, reached := flowsOf(status.Fetch(ctx, addresses, &q)); !reached || len(rows) > 0 {
		return ""
	}
	q.Flow = ""
	rows, _ := flowsOf(status.Fetch(ctx, addresses, &q))
	text := fmt.Sprintf("no flow has %q in its name", part)
	if len(rows) == 0 {
		return text + ", and none is active"
	}
	text += "; active are " + strings.Join(rows[:min(len(rows), flowsNamed)], ", ")
	if more := len(rows) - flowsNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// flowsOf returns the names of the flows of all documents, each once, and whether there is a document.
func flowsOf(answers []status.Answer) (names []string, reached bool) {
	for _, a := range answers {
		if a.Document == nil {
			continue
		}
		reached = true
		for i := range a.Document.Flows {
			if name := printable.Text(a.Document.Flows[i].Flow); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, reached
}
