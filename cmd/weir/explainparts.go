package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// mostParts is the largest number of shown flows, and of shown endpoints.
const mostParts = 10

// part is the requests of one flow, or of one endpoint.
type part struct {
	name             string
	requests, others int // others are outside the window
	rejected         int
	waited, longest  time.Duration
	// service is the sum over the ended served requests, and otherService the sum over the others.
	service, otherService time.Duration
	ended, otherEnded     int
}

// sayParts distinguishes a noisy tenant from a slow engine in a part of a recording: it writes the requests and waits
// of each flow and the times of each endpoint, compared with the rest of the recording.
func (o *explainOptions) sayParts(out io.Writer, list, all *recording.List) {
	flows, endpoints := partsOf(list, all)
	begin, end := o.window(all.From, all.To)
	inside := end.Sub(begin)
	outside := all.To.Sub(all.From) - inside

	_, _ = fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "flow\trequests\tper second\totherwise\trejected\twaited\tlongest")
	slices.SortFunc(flows, func(a, b *part) int {
		return cmp.Or(cmp.Compare(b.waited, a.waited), cmp.Compare(b.requests, a.requests), cmp.Compare(a.name, b.name))
	})
	for _, p := range flows[:min(mostParts, len(flows))] {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%v\t%v\n", decision.Printable(p.name), p.requests, perSecond(p.requests, inside),
			perSecond(p.others, outside), p.rejected, rough(p.waited), rough(p.longest))
	}
	_ = w.Flush() // an error: the reader is gone
	sayMore(out, len(flows), "flows")
	if len(endpoints) == 0 {
		return
	}
	_, _ = fmt.Fprintln(out)
	_, _ = fmt.Fprintln(w, "endpoint\trequests\tper second\totherwise\tserved in\totherwise")
	slices.SortFunc(endpoints, func(a, b *part) int {
		return cmp.Or(cmp.Compare(b.service/time.Duration(max(1, b.ended)), a.service/time.Duration(max(1, a.ended))), cmp.Compare(a.name, b.name))
	})
	for _, p := range endpoints[:min(mostParts, len(endpoints))] {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", decision.Printable(p.name), p.requests, perSecond(p.requests, inside), perSecond(p.others, outside),
			mean(p.service, p.ended), mean(p.otherService, p.otherEnded))
	}
	_ = w.Flush()
	sayMore(out, len(endpoints), "endpoints")
}

// partsOf sums the requests of a list by flow and by endpoint, and all others of the recording.
func partsOf(list, all *recording.List) (flows, endpoints []*part) {
	byFlow, byEndpoint := map[string]*part{}, map[string]*part{}
	of := func(m map[string]*part, name string) *part {
		if m[name] == nil {
			m[name] = &part{name: name}
		}
		return m[name]
	}
	for i := range list.Requests {
		r := &list.Requests[i]
		f := of(byFlow, r.Flow)
		f.requests++
		f.waited += r.Waited
		f.longest = max(f.longest, r.Waited)
		f.rejected += one(isRejection(r.Outcome))
		if r.Endpoint != "" {
			e := of(byEndpoint, r.Endpoint)
			e.requests++
			e.service += r.Service
			e.ended += one(r.Service > 0)
		}
	}
	for i := range all.Requests {
		r := &all.Requests[i]
		if f := byFlow[r.Flow]; f != nil {
			f.others++
		}
		if e := byEndpoint[r.Endpoint]; e != nil {
			e.others++
			e.otherService += r.Service
			e.otherEnded += one(r.Service > 0)
		}
	}
	for _, m := range []map[string]*part{byFlow, byEndpoint} {
		for _, p := range m { // so far counted over all
			p.others -= p.requests
			p.otherService -= p.service
			p.otherEnded -= p.ended
		}
	}
	return slices.Collect(maps.Values(byFlow)), slices.Collect(maps.Values(byEndpoint))
}

// isRejection reports whether an outcome of a list is a rejection.
func isRejection(outcome string) bool {
	switch outcome {
	case decision.Waiting, decision.InFlight, dispatch.OutcomeDispatched.String(), dispatch.OutcomeClientCancelled.String(),
		dispatch.OutcomeDeadlineExceeded.String():
		return false
	}
	return true
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func sayMore(out io.Writer, all int, what string) {
	if more := all - mostParts; more > 0 {
		_, _ = fmt.Fprintf(out, "and %d more %s\n", more, what)
	}
}

// perSecond returns a rate; "-" if the time is 0.
func perSecond(n int, in time.Duration) string {
	if in <= 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(n)/in.Seconds(), 'f', 2, 64)
}

// mean returns the mean of n times; "-" without one.
func mean(sum time.Duration, n int) string {
	if n == 0 {
		return "-"
	}
	return rough(sum / time.Duration(n)).String()
}

// rough returns a time with about three digits.
func rough(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}
