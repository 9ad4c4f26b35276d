package loadgen

import (
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/weir-epp/weir/internal/shown"
)

// WriteTable writes a line per scene and tenant, and a line over all tenants if there are several. Latencies are TTFTs
// of the requests answered with 2xx.
func WriteTable(w io.Writer, summaries ...Summary) error {
	t := shown.Table(table.Row{"scene", "tenant", "requests", "ok", "rejected", "failed", "ok/s", "TTFT p50", "p95", "p99"}, 3)
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

// latencyText is the value, or a dash for an empty distribution.
func latencyText(d Distribution, value time.Duration) string {
	if d.Count == 0 {
		return "-"
	}
	return shown.Duration(value)
}
