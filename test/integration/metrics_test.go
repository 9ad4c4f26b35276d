package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// patience bounds every wait for a state, far above what any of them takes, so that only a defect reaches it.
const patience = 2 * time.Minute

// eventually waits until condition returns nil, and otherwise fails the test with its last error.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	within(t, patience, what, condition)
}

// within is eventually with another bound, for states with a promised or a longer time.
func within(t *testing.T, bound time.Duration, what string, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, bound, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// scrape reads all metrics of epp.
func (e *epp) scrape() (map[string]*dto.MetricFamily, error) {
	response, err := http.Get(e.metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// value returns a metric's value, summed over all series whose labels include the given ones (name, value, name, value
// …); 0 if there is none. A histogram's value is its count.
func (e *epp) value(name string, labels ...string) float64 {
	e.t.Helper()
	families, err := e.scrape()
	if err != nil {
		e.t.Fatalf("scraping: %v", err)
	}
	return sum(families, name, labels...)
}

func sum(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	total := 0.0
	for _, m := range families[name].GetMetric() {
		if !labelled(m, labels) {
			continue
		}
		total += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() +
			float64(m.GetHistogram().GetSampleCount())
	}
	return total
}

func labelled(m *dto.Metric, want []string) bool {
	has := map[string]string{}
	for _, l := range m.GetLabel() {
		has[l.GetName()] = l.GetValue()
	}
	for i := 0; i+1 < len(want); i += 2 {
		if has[want[i]] != want[i+1] {
			return false
		}
	}
	return true
}

// waitFor waits until a metric, summed over the matching series, has the value.
func (e *epp) waitFor(want float64, name string, labels ...string) {
	e.t.Helper()
	eventually(e.t, fmt.Sprintf("%s%v = %v", name, labels, want), func() error {
		families, err := e.scrape()
		if err != nil {
			return err
		}
		if got := sum(families, name, labels...); got != want {
			return fmt.Errorf("%s%v is %v", name, labels, got)
		}
		return nil
	})
}

// told waits until epp's log has a text so many times, and fails the test if it has it more often.
func (e *epp) told(times int, text string) {
	e.t.Helper()
	count := func() int { return strings.Count(e.log.String(), text) }
	eventually(e.t, fmt.Sprintf("%q in the log", text), func() error {
		if n := count(); n < times {
			return fmt.Errorf("%d times, want %d", n, times)
		}
		return nil
	})
	if n := count(); n != times {
		e.t.Errorf("%q is in the log %d times, want %d", text, n, times)
	}
}

// settled waits until nothing is queued, held or in flight: the accounts are back at zero.
func (e *epp) settled() {
	e.t.Helper()
	e.waitFor(0, "weir_queue_length")
	e.waitFor(0, "weir_stock_level")
	e.waitFor(0, "weir_active_flows")
}

// outcomes returns requests_total by outcome.
func (e *epp) outcomes() map[string]int {
	e.t.Helper()
	families, err := e.scrape()
	if err != nil {
		e.t.Fatalf("scraping: %v", err)
	}
	counts := map[string]int{}
	for _, m := range families["weir_requests_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "outcome" && m.GetCounter().GetValue() > 0 {
				counts[l.GetValue()] += int(m.GetCounter().GetValue())
			}
		}
	}
	return counts
}
