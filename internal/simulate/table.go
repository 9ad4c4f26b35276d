package simulate

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// plain has columns with two blanks between them and rules of dashes, and nothing around.
var plain = table.Style{
	Box:     table.BoxStyle{MiddleVertical: "  ", MiddleHorizontal: "─", MiddleSeparator: "  "},
	Options: table.Options{SeparateColumns: true, SeparateHeader: true},
}

// mostRows is the number of flows of each configuration that a table shows.
const mostRows = 12

// WriteTable writes a line for each report and, with several flows, a line for each flow of it.
func WriteTable(w io.Writer, reports []*Report) error {
	t := table.NewWriter()
	t.SetStyle(plain)
	t.SuppressTrailingSpaces()
	header := table.Row{
		"configuration", "flow", "requests", "answered", "rejected", "wait", "TTFT", "TTFT p50", "TTFT p99", "hit %", "output tokens/s",
	}
	t.AppendHeader(header)
	var numbers []table.ColumnConfig
	for column := 3; column <= len(header); column++ {
		numbers = append(numbers, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(numbers)
	row := func(name, flow string, f *Figures) {
		t.AppendRow(table.Row{
			name, flow, f.Requests, f.Answered, f.Requests - f.Answered, durationText(f.Wait.Mean), durationText(f.TTFT.Mean),
			durationText(f.TTFT.P50), durationText(f.TTFT.P99), decimal(f.HitPercent, 1), decimal(f.OutputTokensPerSec, 0),
		})
	}
	for i, r := range reports {
		if i > 0 && len(r.Flows) > 1 {
			t.AppendSeparator()
		}
		row(r.Name, "all", &r.All)
		if len(r.Flows) < 2 {
			continue
		}
		for i := range r.Flows[:min(mostRows, len(r.Flows))] {
			row("", r.Flows[i].Flow, &r.Flows[i].Figures)
		}
		if more := len(r.Flows) - mostRows; more > 0 {
			t.AppendRow(table.Row{"", fmt.Sprintf("and %d more", more)})
		}
	}
	_, err := io.WriteString(w, t.Render()+"\n")
	return err
}

func decimal(x float64, places int) string { return strconv.FormatFloat(x, 'f', places, 64) }

// durationText has three significant digits and the unit that suits.
func durationText(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", seconds*1e6)
	case d < time.Second-500*time.Microsecond:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	case d < 100*time.Second:
		return fmt.Sprintf("%.3g s", seconds)
	default:
		return fmt.Sprintf("%.0f s", seconds)
	}
}
