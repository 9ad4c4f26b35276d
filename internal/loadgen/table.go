package loadgen

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteTable writes a line per scene and tenant, and a line over all tenants where there are several. Latencies are
// TTFTs of the requests answered with 2xx.
func WriteTable(w io.Writer, summaries ...Summary) error {
	t := newTextTable(2, "scene", "tenant", "requests", "ok", "rejected", "failed", "ok/s", "TTFT p50", "p95", "p99")
	for i := range summaries {
		summary := &summaries[i]
		tenants := summary.Tenants
		if len(tenants) > 1 {
			tenants = append(slices.Clip(tenants), summary.All)
		}
		scene := summary.Scene
		if i > 0 {
			t.rule()
		}
		for _, tenant := range tenants {
			t.row(scene, tenant.Tenant, strconv.Itoa(tenant.Requests), strconv.Itoa(tenant.OK),
				strconv.Itoa(tenant.Rejected), strconv.Itoa(tenant.Failed), strconv.FormatFloat(tenant.Throughput, 'f', 1, 64),
				latencyText(tenant.TTFT, tenant.TTFT.P50), latencyText(tenant.TTFT, tenant.TTFT.P95),
				latencyText(tenant.TTFT, tenant.TTFT.P99))
			scene = ""
		}
	}
	return t.write(w)
}

// WriteOutcomes writes a line per scene, tenant and way to end, the most frequent first.
func WriteOutcomes(w io.Writer, summaries ...Summary) error {
	t := newTextTable(3, "scene", "tenant", "outcome", "requests")
	for i := range summaries {
		for _, tenant := range summaries[i].Tenants {
			for _, outcome := range tenant.Outcomes {
				t.row(summaries[i].Scene, tenant.Tenant, outcome.String(), strconv.Itoa(outcome.Count))
			}
		}
	}
	return t.write(w)
}

// WriteComparison writes, for each figure and scenario, the median with its range, and the median of the ratios to the
// scenario base pair by pair with theirs.
func WriteComparison(w io.Writer, comparison *Comparison, base string) error {
	t := newTextTable(2, "figure", "scenario", "median", "min", "max", "to "+base, "min", "max")
	for i, figure := range comparison.Names() {
		if i > 0 {
			t.rule()
		}
		label := figure
		for _, scenario := range comparison.Scenarios {
			of, ratio := comparison.Of(scenario, figure), comparison.Ratio(scenario, base, figure)
			t.row(label, scenario, numberText(of.Median), numberText(of.Min), numberText(of.Max),
				numberText(ratio.Median), numberText(ratio.Min), numberText(ratio.Max))
			label = ""
		}
	}
	return t.write(w)
}

// latencyText is the value, or a dash for a distribution of nothing.
func latencyText(d Distribution, value time.Duration) string {
	if d.Count == 0 {
		return "-"
	}
	return durationText(value)
}

// durationText has three significant digits and the unit that suits: 850 µs, 12.3 ms, 213 ms, 2.87 s.
func durationText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	case d < time.Second-500*time.Microsecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	case d < 100*time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}

// numberText has three significant digits, more where the number has more before its point, and a dash for NaN.
func numberText(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// textTable lays out cells in columns: the first few to the left, the others, numbers, to the right.
type textTable struct {
	left int
	rows [][]string // an empty row is a rule
}

func newTextTable(left int, header ...string) *textTable {
	t := &textTable{left: left}
	t.row(header...)
	t.rule()
	return t
}

func (t *textTable) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *textTable) rule() { t.rows = append(t.rows, nil) }

func (t *textTable) write(w io.Writer) error {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, width := range widths {
			if i > 0 {
				line.WriteString("  ")
			}
			switch {
			case row == nil:
				line.WriteString(strings.Repeat("─", width))
			case i < t.left:
				line.WriteString(row[i] + strings.Repeat(" ", width-utf8.RuneCountInString(row[i])))
			default:
				line.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(row[i])) + row[i])
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}
