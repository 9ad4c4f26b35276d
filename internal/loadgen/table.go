package loadgen

import (
	"fmt"
	"io"
	"slices"
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

// WriteTable writes a line per scene and tenant, and a line over all tenants where there are several. Latencies are
// TTFTs of the requests answered with 2xx.
func WriteTable(w io.Writer, summaries ...Summary) error {
	t := table.NewWriter()
	t.SetStyle(plain)
	t.SuppressTrailingSpaces()
	header := table.Row{"scene", "tenant", "requests", "ok", "rejected", "failed", "ok/s", "TTFT p50", "p95", "p99"}
	t.AppendHeader(header)
	var numbers []table.ColumnConfig
	for column := 3; column <= len(header); column++ {
		numbers = append(numbers, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(numbers)
	for i := range summaries {
		summary := &summaries[i]
		tenants := summary.Tenants
		if len(tenants) > 1 {
			tenants = append(slices.Clip(tenants), summary.All)
		}
		if i > 0 {
			t.AppendSeparator()
		}
		scene := summary.Scene
		for _, tenant := range tenants {
			t.AppendRow(table.Row{
				scene, tenant.Tenant, tenant.Requests, tenant.OK, tenant.Rejected, tenant.Failed,
				strconv.FormatFloat(tenant.Throughput, 'f', 1, 64), latencyText(tenant.TTFT, tenant.TTFT.P50),
				latencyText(tenant.TTFT, tenant.TTFT.P95), latencyText(tenant.TTFT, tenant.TTFT.P99),
			})
			scene = ""
		}
	}
	_, err := io.WriteString(w, t.Render()+"\n")
	return err
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
