package status

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Lines returns the lines above the tables.
func (d *Document) Lines() [][2]string {
	p := &d.Pool
	state := "ready"
	if !p.Ready {
		state = "NOT READY (" + Plain(p.Lacks) + ")"
	}
	if role := p.Role(); role != "" {
		state += ", " + role
	}
	name := "profile " + Plain(p.Profile)
	if p.Name != "" {
		name = Plain(p.Name) + ", " + name
	}
	bound := "no bound"
	if p.UpperBound != nil {
		bound = fmt.Sprintf("%g", *p.UpperBound)
	}
	ended := "not known yet"
	if d.WindowSeconds > 0 {
		ended = fmt.Sprintf("%.1f/s, %.1f/s rejected, in the last %s", p.Requests, p.Rejected, span(d.WindowSeconds))
	}
	return [][2]string{
		{"pool", name + ", " + state},
		{"engines", fmt.Sprintf("%d of %d ready", p.ReadyEngines, p.Engines)},
		{"waiting", fmt.Sprintf("%d of %d, in %d flows", p.Waiting, p.QueueCapacity, p.WaitingFlows)},
		{"stock", fmt.Sprintf("%d of %s, %d elsewhere", p.Stock, bound, p.Elsewhere)},
		{"requests", ended},
	}
}

// Print writes the documents of the replicas as text, with the verdict.
func Print(out io.Writer, answers []Answer) error {
	v, reasons := Judge(answers)
	w := &printer{w: out}
	switch v {
	case Healthy:
		w.line("healthy")
	case Degraded:
		w.line("DEGRADED")
	case Unreachable:
		w.line("UNREACHABLE")
	}
	for _, r := range reasons {
		w.line("  " + r)
	}
	for i := range answers {
		a := &answers[i]
		if a.Document == nil {
			continue
		}
		w.line("")
		if len(answers) > 1 {
			w.line("replica " + a.Address)
		}
		for i := range a.Document.Notes {
			w.line("note      " + a.Document.Notes[i].Line())
		}
		a.Document.print(w)
	}
	return w.err
}

func (d *Document) print(w *printer) {
	var lines [][]string
	for _, l := range d.Lines() {
		lines = append(lines, []string{l[0], l[1]})
	}
	w.table(nil, lines)
	rated := d.WindowSeconds > 0
	w.table(TierColumns, cellsOf(d.Tiers, func(t *Tier) []string { return t.Cells() }))
	w.table(EngineColumns, cellsOf(d.Engines, func(e *Engine) []string { return e.Cells(rated) }))
	w.more(d.LeftOut.Engines, "engines", len(d.Engines))
	w.table(FlowColumns, cellsOf(d.Flows, func(f *Flow) []string { return f.Cells(rated) }))
	w.more(d.LeftOut.Flows, "flows", len(d.Flows))
	w.table(RejectColumns, d.RejectionRows())
	w.more(d.LeftOut.Rejections, "rejections", len(d.Rejections))
}

func cellsOf[R any](rows []R, cells func(*R) []string) (all [][]string) {
	for i := range rows {
		all = append(all, cells(&rows[i]))
	}
	return all
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(text string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, text)
	}
}

// more writes the number of rows left out after those shown, and the flag that shows more of them.
func (p *printer) more(n int, what string, shown int) {
	if n == 0 {
		return
	}
	line := fmt.Sprintf("%d more %s", n, what)
	if most := min(shown+n, MostRows); most > shown {
		line += fmt.Sprintf(": --%s %d shows more", what, most)
	}
	p.line(line)
}

// table writes a line, and a table with its columns, if there are rows.
func (p *printer) table(columns []string, rows [][]string) {
	if len(rows) == 0 || p.err != nil {
		return
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if columns != nil {
		p.line("")
		_, _ = fmt.Fprintln(w, strings.ToUpper(strings.Join(columns, "\t")))
	}
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	for line := range strings.Lines(text.String()) {
		p.line(strings.TrimRight(line, " \n"))
	}
}
