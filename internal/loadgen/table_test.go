package loadgen

import (
	"strings"
	"testing"
)

// The table has a line for each scene and tenant, and one for all. A rule separates scenes, and figures are
// right-aligned.
func TestTable(t *testing.T) {
	const want = `
scene    tenant       requests   ok  rejected  failed  ok/s  TTFT p50     p95     p99
───────  ───────────  ────────  ───  ────────  ──────  ────  ────────  ──────  ──────
without  interactive        58   58         0       0   2.0    2.61 s  3.16 s  3.31 s
         batch             560  560         0       0  19.3    2.91 s  3.21 s  3.36 s
         all               618  618         0       0  21.3    2.89 s  3.21 s  3.34 s
───────  ───────────  ────────  ───  ────────  ──────  ────  ────────  ──────  ──────
with     interactive        58   58         0       0   2.0    215 ms  287 ms  306 ms
         batch             560  560         0       0  19.3    2.91 s  3.21 s  3.36 s
         all               618  618         0       0  21.3    2.87 s  3.21 s  3.34 s
`
	var got strings.Builder
	err := WriteTable(&got, Summarise("without", syntheticReport(false)), Summarise("with", syntheticReport(true)))
	if err != nil || "\n"+got.String() != want {
		t.Errorf("%v\n%swant%s", err, got.String(), want)
	}
}
