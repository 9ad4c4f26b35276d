package observe

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/checkout"
)

// past is a Prometheus with the scrapes of a rig moved back by an hour, and nothing newer.
type past struct {
	t          *testing.T
	job        string
	prometheus *prometheus
	at         time.Time // the last of these scrapes
}

// anHourAgo moves the scrapes of a rig since began back by an hour, and backfills them into another Prometheus: the
// view of an operator who is called an hour late.
func (r *rig) anHourAgo(began time.Time) past {
	r.t.Helper()
	const hour = time.Hour
	now := time.Now()
	dir := r.t.TempDir()
	file := filepath.Join(dir, "scrapes.txt")
	if err := os.WriteFile(file, []byte(r.recorded(began, now, hour)), 0o600); err != nil {
		r.t.Fatal(err)
	}
	promtool, err := checkout.Tool(r.t.Context(), "promtool")
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := exec.CommandContext(r.t.Context(), promtool, "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "data")).CombinedOutput()
	if err != nil {
		r.t.Fatalf("promtool: %v\n%s", err, out)
	}
	p, err := startPrometheus(r.t.Context(), dir, "global: {}\n")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = p.process.Kill() })
	return past{r.t, r.name, p, now.Add(-hour)}
}

// recorded returns all samples of a rig between two times in the format of OpenMetrics, moved back by a time.
func (r *rig) recorded(from, to time.Time, back time.Duration) string {
	r.t.Helper()
	window := fmt.Sprintf(`{job=~"%s(/envoy)?"}[%ds]`, r.name, int(to.Sub(from).Seconds())+1)
	samples := r.prometheus.query(r.t, window, to)
	if len(samples) == 0 {
		r.t.Fatalf("%s has no samples", window)
	}
	var text strings.Builder
	for _, s := range samples {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(s.labels)) {
			if name != "__name__" {
				labels = append(labels, fmt.Sprintf("%s=%q", name, s.labels[name]))
			}
		}
		fmt.Fprintf(&text, "%s{%s} %s %.3f\n", s.labels["__name__"], strings.Join(labels, ","),
			strconv.FormatFloat(s.value, 'g', -1, 64), s.at-back.Seconds())
	}
	return text.String() + "# EOF\n"
}

// red checks that exactly this value of a label was red on a panel.
func (p past) red(title, label, value string) {
	p.t.Helper()
	onlyRed(p.t, title+" (an hour ago)", judge(p.t, p.prometheus, panelOf(p.t, title), p.job, p.at), label, value)
}

// notRed checks that these panels were not.
func (p past) notRed(titles ...string) {
	p.t.Helper()
	for _, title := range titles {
		for _, s := range judge(p.t, p.prometheus, panelOf(p.t, title), p.job, p.at) {
			if s.red {
				p.t.Errorf("%q was red an hour ago: %v of %v", title, s.value, s.labels)
			}
		}
	}
}
