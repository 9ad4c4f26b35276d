package integration

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/internal/expect"
)

// patience bounds every wait for a state.
const patience = expect.Patience

// scrape reads all metrics of epp.
func (e *epp) scrape() expect.Metrics {
	e.t.Helper()
	families, err := expect.Scrape(e.MetricsURL + "/metrics")
	if err != nil {
		e.t.Fatalf("scraping: %v", err)
	}
	return families
}

// value returns a metric's value, summed over all series whose labels include the given ones, as [expect.Metrics.Sum] has it.
func (e *epp) value(name string, labels ...string) float64 {
	e.t.Helper()
	return e.scrape().Sum(name, labels...)
}

// waitFor waits until a metric, summed over the matching series, has the value.
func (e *epp) waitFor(want float64, name string, labels ...string) {
	e.t.Helper()
	expect.Eventually(e.t, fmt.Sprintf("%s%v = %v", name, labels, want), func() error {
		families, err := expect.Scrape(e.MetricsURL + "/metrics")
		if got := families.Sum(name, labels...); err == nil && got != want {
			err = fmt.Errorf("%s%v is %v", name, labels, got)
		}
		return err
	})
}

// told waits until epp's log has a text so many times, and fails the test if it has more.
func (e *epp) told(times int, text string) {
	e.t.Helper()
	count := func() int { return strings.Count(e.Log.String(), text) }
	expect.Eventually(e.t, fmt.Sprintf("%q in the log", text), func() error {
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
	counts := map[string]int{}
	for _, m := range e.scrape()["weir_requests_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "outcome" && m.GetCounter().GetValue() > 0 {
				counts[l.GetValue()] += int(m.GetCounter().GetValue())
			}
		}
	}
	return counts
}
