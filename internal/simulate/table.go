package simulate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/weir-epp/weir/internal/shown"
)

// mostRows is the number of flows of each configuration in a table.
const mostRows = 12

// WriteTable writes a line for each report and, with several flows, a line for each of its flows. The column "too long"
// appears only with such requests.
func WriteTable(w io.Writer, reports []*Report) error {
	tooLong := slices.ContainsFunc(reports, func(r *Report) bool { return r.TooLong > 0 })
	columns := func(counts table.Row, long any, rest ...any) table.Row {
		if tooLong {
			counts = append(counts, long)
		}
		return append(counts, rest...)
	}
	t := shown.Table(columns(
		table.Row{"configuration", "flow", "requests", "answered", "rejected"}, "too long",
		"wait", "TTFT", "TTFT p50", "TTFT p99", "hit %", "output tokens/s",
	), 3)
	row := func(_ *Report, name, flow string, f *Figures) {
		t.AppendRow(columns(
			table.Row{name, flow, f.Requests, f.Answered, f.Requests - f.Answered - f.TooLong}, f.TooLong,
			durationText(f.Wait.Mean), durationText(f.TTFT.Mean), durationText(f.TTFT.P50), durationText(f.TTFT.P99),
			decimal(f.HitPercent, 1), decimal(f.OutputTokensPerSec, 0),
		))
	}
	writeRows(t, reports, row)
	_, err := io.WriteString(w, t.Render()+"\n")
	return err
}

// WriteServiceTable writes a line with the ServiceFigures of each report. All reports must have Service.
func WriteServiceTable(w io.Writer, reports []*Report) error {
	t := shown.Table(table.Row{
		"configuration", "difference", "largest", "of all runs", "Jain", "least", "wait", "wait p99", "answered", "tokens/s",
	}, 2)
	for _, r := range reports {
		s := r.Service
		t.AppendRow(table.Row{
			r.Name, decimal(s.MeanDifference, 1), decimal(s.MaxDifference, 1), decimal(s.WorstDifference, 1), decimal(s.Jain, 4),
			decimal(s.LeastJain, 3), durationText(r.All.Wait.Mean), durationText(r.All.Wait.P99), r.All.Answered,
			decimal(s.TokensPerSecond, 0),
		})
	}
	_, err := io.WriteString(w, t.Render()+"\n")
	return err
}

// writeRows adds a row for each report, and with several flows one for each of its flows.
func writeRows(t table.Writer, reports []*Report, row func(r *Report, name, flow string, f *Figures)) {
	for i, r := range reports {
		if i > 0 && len(r.Flows) > 1 {
			t.AppendSeparator()
		}
		row(r, r.Name, "all", &r.All)
		if len(r.Flows) < 2 {
			continue
		}
		for i := range r.Flows[:min(mostRows, len(r.Flows))] {
			row(r, "", r.Flows[i].Flow, &r.Flows[i].Figures)
		}
		if more := len(r.Flows) - mostRows; more > 0 {
			t.AppendRow(table.Row{"", fmt.Sprintf("and %d more", more)})
		}
	}
}

func decimal(x float64, places int) string { return strconv.FormatFloat(x, 'f', places, 64) }

// durationText returns seconds as text.
func durationText(seconds float64) string {
	if seconds == 0 {
		return "0"
	}
	return shown.Duration(time.Duration(math.Round(seconds * float64(time.Second))))
}
