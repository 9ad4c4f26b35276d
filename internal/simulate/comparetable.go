package simulate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/weir-epp/weir/internal/shown"
	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/recording"
)

// The values of FlowChange.Clients.
const (
	clientsOpen   = "open"
	clientsClosed = "closed"
	clientsMixed  = "mixed"
)

// clientsOf returns the assumed behavior of each flow's clients.
func clientsOf(h *recording.History, clients Clients) map[string]string {
	begins, follows := loopsOf(h, clients)
	of := map[string]string{}
	for _, v := range h.Visits {
		is := clientsOpen
		if follows[v] || begins[v] != nil {
			is = clientsClosed
		}
		if was := of[v.Arrival.Flow]; was != "" && was != is {
			is = clientsMixed
		}
		of[v.Arrival.Flow] = is
	}
	return of
}

// missing returns notes on names in the recording's requests that the configuration lacks.
func (r *recorded) missing(name string) (notes []string) {
	known := map[string]bool{}
	tiers := r.machine.Config().Queue.Tiers
	for _, t := range tiers {
		known[t.Name] = true
	}
	counts := map[string]int{}
	for _, v := range r.history.Visits {
		if tier := v.Arrival.TierName; tier != "" && !known[tier] {
			counts[tier]++
		}
	}
	for _, tier := range slices.Sorted(maps.Keys(counts)) {
		notes = append(notes, fmt.Sprintf("%s has no tier %q: the %d requests in it go to its lowest one, %q", name, tier, counts[tier],
			tiers[len(tiers)-1].Name))
	}
	if !r.charged && unitOf(r.history) == unitTokens {
		notes = append(notes, name+" charges requests alike; the shares are of tokens all the same")
	}
	if r.charged && unitOf(r.history) == unitRequests {
		notes = append(notes, "the recording counts requests and has no tokens: "+name+" is simulated with a cost of 1 for each")
	}
	return notes
}

// notes returns the assumptions behind the figures.
func (c *comparing) notes(h *recording.History, out *Comparison) (notes []string) {
	if h.Refused > 0 {
		notes = append(notes, fmt.Sprintf("%d requests were refused before they came to the queue; they are left out", h.Refused))
	}
	if len(h.Configs) > 0 {
		notes = append(notes, fmt.Sprintf("the configuration changed %s in the recording; before is what happened under all of it",
			times(len(h.Configs))))
	}
	if slices.ContainsFunc(out.Configurations, func(o Outlook) bool { return o.All.Before.Rejected+o.All.After.Rejected > 0 }) {
		notes = append(notes, "waits are those of granted requests; a flow whose slowest requests are rejected seems to wait less")
	}
	if c.simulated == nil {
		return notes
	}
	if loops := c.behaving(clientsClosed); len(loops) > 0 {
		notes = append(notes, "closed loops: "+some(loops)+". Each client sends a request when the one before has ended (--clients)")
	}
	if open := c.behaving(clientsOpen); len(open) > 0 {
		notes = append(notes, "arrivals as recorded: "+some(open)+". Clients that wait for answers would send at other times (--clients)")
	}
	if mixed := c.behaving(clientsMixed); len(mixed) > 0 {
		notes = append(notes, "closed loops at times, and arrivals as recorded at others: "+some(mixed))
	}
	for _, o := range out.Configurations {
		if o.Similar > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d requests take the time of one of their flow, model and size, since theirs is not in the recording",
				o.Name, o.Similar))
		}
	}
	return append(notes, "requests take their recorded times at engines, as if more of them at once made no engine slower")
}

// behaving returns the flows with this behavior of their clients.
func (c *comparing) behaving(clients string) (flows []string) {
	for _, flow := range c.flows() {
		if c.clients[flow] == clients {
			flows = append(flows, decision.Printable(flow))
		}
	}
	return flows
}

// some names at most three.
func some(names []string) string {
	const most = 3
	if more := len(names) - most; more > 1 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return plural(n, "time")
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// Write writes the comparison for people: the error first, then a table for each configuration, then notes.
func (c *Comparison) Write(w io.Writer) error {
	var out strings.Builder
	if e := c.Error; e != nil {
		_, _ = fmt.Fprintf(&out, "prediction error, of the recorded configuration: shares %s points (%s), median waits %s %% (%s)\n",
			decimal(e.SharePoints, 1), decision.Printable(e.ShareFlow), decimal(e.WaitPercent, 1), decision.Printable(e.WaitFlow))
	}
	r := &c.Recording
	_, _ = fmt.Fprintf(&out, "recording: %s in %v; its configuration reproduced %d of %d grants\n",
		plural(r.Requests, "request"), r.To.Sub(r.From).Round(time.Millisecond), r.Grants, r.Grants)
	for i := range c.Configurations {
		out.WriteString("\n" + c.Configurations[i].table(r.Unit))
	}
	if len(c.Notes) > 0 {
		out.WriteByte('\n')
	}
	for _, note := range c.Notes {
		out.WriteString("note: " + note + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// table returns a table of the changes.
func (o *Outlook) table(unit string) string {
	change := func(before, after string) string { return before + " → " + after }
	title, errors := o.Name, "error"
	if o.AsRecorded {
		change = func(before, _ string) string { return before }
		if title != Recorded {
			title += ", which is the configuration of the recording"
		}
		errors = ""
	}
	left := o.All.Before.Left+o.All.After.Left > 0
	header := table.Row{"flow", "clients", "requests", "share of " + unit, "wait p50", "wait p95", "rejected"}
	if left {
		header = append(header, "left")
	}
	t := shown.Table(append(header, errors), 3)
	row := func(f *FlowChange) {
		b, a := &f.Before, &f.After
		cells := table.Row{
			decision.Printable(f.Flow), f.Clients, change(strconv.Itoa(b.Requests), strconv.Itoa(a.Requests)),
			change(decimal(b.SharePercent, 1), decimal(a.SharePercent, 1)) + " %",
			change(durationText(b.WaitP50), durationText(a.WaitP50)), change(durationText(b.WaitP95), durationText(a.WaitP95)),
			change(strconv.Itoa(b.Rejected), strconv.Itoa(a.Rejected)),
		}
		if left {
			cells = append(cells, change(strconv.Itoa(b.Left), strconv.Itoa(a.Left)))
		}
		if !o.AsRecorded {
			cells = append(cells, fmt.Sprintf("%s points, %s %%", decimal(f.ErrorPoints, 1), decimal(f.ErrorPercent, 0)))
		}
		t.AppendRow(cells)
	}
	for i := range o.Flows {
		row(&o.Flows[i])
	}
	if len(o.Flows) > 1 {
		row(&o.All)
	}
	return title + "\n" + t.Render() + "\n"
}
