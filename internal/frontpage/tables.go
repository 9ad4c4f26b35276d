package frontpage

import (
	"fmt"
	"strconv"

	"github.com/weir-epp/weir/internal/status"
)

// table is one of the page's tables.
type table struct {
	ID, Title string
	Columns   []column
	Rows      [][]cell
	Empty     string // shown instead of a table without rows
	Left      string // says how many rows are left out; "": none
	More      string // link to a page with more of them; "": there is none
}

// column is the head of a column. Sort is the link that sorts by it; "": none. Sorted is "ascending" or "descending"
// for the sorted column.
type column struct {
	Name, Sort, Sorted string
	Number             bool
}

// cell is one cell. Mark is "", "good", "warn" or "bad".
type cell struct {
	Text, Mark   string
	Number, Name bool
	Bar          *bar
}

// bar is a part of a whole, from 0 to 100. Tick is the position of a mark, or negative.
type bar struct {
	Width, Tick float64
	Full        bool
}

// partOf returns a bar for a part of a whole; nil if there is no whole.
func partOf(part, whole float64) *bar {
	if whole <= 0 {
		return nil
	}
	return &bar{Width: percent(part / whole), Tick: -1, Full: part >= whole}
}

func percent(share float64) float64 { return 100 * min(max(share, 0), 1) }

// The orders of the sortable columns.
var (
	engineSorts = map[string]string{
		"engine": "endpoint", "state": "health", "fill": "fill", "rate/s": "rate", "fail/s": "failures", "service": "service", "oldest": "oldest",
	}
	flowSorts = map[string]string{
		"flow": "flow", "waiting": "waiting", "since": "since", "in flight": "in-flight", "entitled": "entitled", "attained": "attained", "rate/s": "rate",
		"reject/s": "rejections",
	}
)

// texts are the columns without numbers.
var texts = map[string]bool{
	"tier": true, "engine": true, "state": true, "flow": true, "for": true, "rejected": true, "outcome": true, "limit": true, "model": true,
}

func (p *Page) tables() []table {
	d := p.Document
	rated := d.WindowSeconds > 0
	tiers := table{ID: "tiers", Title: "Tiers", Columns: p.columns(status.TierColumns, "", nil, "")}
	for i := range d.Tiers {
		t := &d.Tiers[i]
		row := cells(status.TierColumns, t.Cells())
		row[1].Bar = partOf(float64(t.Waiting), float64(t.Limit))
		tiers.Rows = append(tiers.Rows, row)
	}
	engines := table{
		ID: "engines", Title: "Engines", Empty: "No engine is known.",
		Columns: p.columns(status.EngineColumns, "sort-engines", engineSorts, p.Query.SortEngines),
	}
	for i := range d.Engines {
		engines.Rows = append(engines.Rows, engineRow(&d.Engines[i], rated))
	}
	p.left(&engines, d.LeftOut.Engines, p.Query.Engines)
	flows := table{
		ID: "flows", Title: "Flows", Empty: "No flow waits or runs.", Columns: p.columns(status.FlowColumns, "sort-flows", flowSorts, p.Query.SortFlows),
	}
	for i := range d.Flows {
		flows.Rows = append(flows.Rows, flowRow(&d.Flows[i], rated))
	}
	p.left(&flows, d.LeftOut.Flows, p.Query.Flows)
	rejections := table{ID: "rejections", Title: "Last rejections", Empty: "No request was rejected.", Columns: p.columns(status.RejectColumns, "", nil, "")}
	for _, rejected := range d.RejectionRows() {
		row := cells(status.RejectColumns, rejected)
		row[2].Name, row[4].Name, row[5].Name = true, true, true
		rejections.Rows = append(rejections.Rows, row)
	}
	p.left(&rejections, d.LeftOut.Rejections, p.Query.Rejections)
	return []table{tiers, engines, flows, rejections}
}

// engineRow marks the health, and shows the fill as a bar.
func engineRow(e *status.Engine, rated bool) []cell {
	row := cells(status.EngineColumns, e.Cells(rated))
	switch e.State() {
	case "ready":
		row[1].Mark = "good"
	case "down":
		row[1].Mark = "bad"
	default:
		row[1].Mark = "warn"
	}
	if e.Fill != nil {
		row[2].Bar = partOf(*e.Fill, 1)
	}
	return row
}

// flowRow shows the attained share as a bar, with a mark at the entitled one.
func flowRow(f *status.Flow, rated bool) []cell {
	row := cells(status.FlowColumns, f.Cells(rated))
	row[0].Name = true
	if f.Attained != nil {
		row[7].Bar = &bar{Width: percent(*f.Attained), Tick: -1}
		if f.Entitled != nil {
			row[7].Bar.Tick = percent(*f.Entitled)
		}
	}
	return row
}

func cells(columns, texts []string) []cell {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i] = cell{Text: text, Number: isNumber(columns[i])}
	}
	return row
}

func isNumber(column string) bool { return !texts[column] }

// columns returns the heads of a table. parameter sorts the table, and sorts has its orders by column.
func (p *Page) columns(names []string, parameter string, sorts map[string]string, sorted string) (all []column) {
	for _, name := range names {
		c := column{Name: name, Number: isNumber(name)}
		if order := sorts[name]; order != "" {
			c.Sort = p.link(parameter, order)
			switch {
			case order != sorted:
			case order == "flow" || order == "endpoint":
				c.Sorted = "ascending"
			default:
				c.Sorted = "descending"
			}
		}
		all = append(all, c)
	}
	return all
}

// left writes the number of rows left out of a table, with a link to a page with four times as many.
func (p *Page) left(t *table, n, shown int) {
	if n == 0 {
		return
	}
	t.Left = fmt.Sprintf("%d more are not shown.", n)
	if most := min(max(4*shown, 20), status.MostRows); most > shown && len(t.Rows) == shown { // otherwise no more fit
		t.More = p.link(t.ID, strconv.Itoa(most))
	}
}
