package kube

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/expect"
)

// metric returns the value of a series, written without the label pool. ok is false if there is none.
func (e *epp) metric(series string) (value float64, ok bool) {
	e.t.Helper()
	page, err := expect.Read(e.metrics)
	if err != nil {
		e.t.Fatal(err)
	}
	return metricIn(page, series)
}

func metricIn(page, series string) (value float64, ok bool) {
	for line := range strings.Lines(page) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.LastIndex(line, "} "); i > 0 {
			name, number = line[:i+1], strings.TrimSpace(line[i+2:])
		}
		if name == series {
			_, err := fmt.Sscan(number, &value)
			return value, err == nil
		}
	}
	return 0, false
}

// wantMetric waits until a series has a value.
func (e *epp) wantMetric(series string, want float64) {
	e.t.Helper()
	expect.Eventually(e.t, series, func() error {
		if got, ok := e.metric(series); !ok || got != want {
			return fmt.Errorf("is %g (%t), want %g", got, ok, want)
		}
		return nil
	})
}

// logs waits until the log has a text.
func (e *epp) logs(text string) {
	e.t.Helper()
	expect.Eventually(e.t, "the log has "+text, func() error {
		if !strings.Contains(e.Log.String(), text) {
			return fmt.Errorf("it ends with\n%s", child.Tail(e.Log.String(), 3))
		}
		return nil
	})
}

// wantQueued waits until so many requests wait in the queue.
func (e *epp) wantQueued(n int) {
	e.t.Helper()
	expect.Eventually(e.t, fmt.Sprintf("%d wait", n), func() error {
		page, err := expect.Read(e.page)
		if err != nil {
			return err
		}
		if !strings.Contains(strings.Join(strings.Fields(page), " "), fmt.Sprintf("queued %d of", n)) {
			return fmt.Errorf("the page is\n%s", page)
		}
		return nil
	})
}
