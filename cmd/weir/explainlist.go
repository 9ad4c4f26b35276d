package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/recording"
)

// sayList writes the number of requests in a part of a recording, their outcomes, and the longest waits. all has the
// requests of the whole recording.
func (o *explainOptions) sayList(out io.Writer, list, all *recording.List, slowest []recording.Listed) {
	of := ""
	if o.flow != "" {
		of = fmt.Sprintf(" of flow %q", o.flow)
	}
	if o.last > 0 {
		of += fmt.Sprintf(" in the last %v", o.last)
	}
	if o.until > 0 {
		of += fmt.Sprintf(" until %v before its end", o.until)
	}
	waited, early := 0, map[string]int{}
	outcomes := map[string]int{}
	for _, r := range list.Requests {
		switch r.Number {
		case 0:
			early[r.Outcome]++
		default:
			outcomes[r.Outcome]++
			if r.Waited > 0 || r.Outcome == decision.Waiting {
				waited++
			}
		}
	}
	arrived := 0
	for _, n := range outcomes {
		arrived += n
	}
	_, _ = fmt.Fprintf(out, "The recording reaches from %s to %s. It has %d requests%s, of which %d waited: %s.\n",
		list.From.UTC().Format(time.RFC3339), list.To.UTC().Format(time.RFC3339), arrived, of, waited, counts(outcomes))
	if len(early) > 0 {
		_, _ = fmt.Fprintf(out, "Before the queue were refused: %s.\n", counts(early))
	}
	if len(list.Requests) > 0 {
		o.sayParts(out, list, all)
	}
	if len(slowest) == 0 {
		return
	}
	_, _ = fmt.Fprintln(out, "\nThe requests that waited longest:")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "number\twaited\toutcome\tflow\ttier\tendpoint\trequest")
	for _, r := range slowest {
		_, _ = fmt.Fprintf(w, "%d\t%v\t%s\t%s\t%s\t%s\t%s\n", r.Number, r.Waited.Round(time.Microsecond), r.Outcome,
			decision.Printable(r.Flow), decision.Printable(r.Tier), orNone(decision.Printable(r.Endpoint)), orNone(decision.Printable(r.ID)))
	}
	_ = w.Flush() // an error: the reader is gone
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// counts returns counts by name, the largest first.
func counts(of map[string]int) string {
	if len(of) == 0 {
		return "none"
	}
	names := slices.Sorted(maps.Keys(of))
	slices.SortStableFunc(names, func(a, b string) int { return of[b] - of[a] })
	var words []string
	for _, name := range names {
		words = append(words, fmt.Sprintf("%d %s", of[name], name))
	}
	return strings.Join(words, ", ")
}
