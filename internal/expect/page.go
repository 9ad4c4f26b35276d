package expect

import (
	"context"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Get returns the answer with a page.
func Get(url string) Answer { return Send(context.Background(), http.MethodGet, url, "") }

// Read returns a page whose status is 200.
func Read(url string) (string, error) {
	a := Get(url)
	return a.Body, a.Served()
}

// Page is Read, and ends the test at an error.
func Page(t testing.TB, url string) string {
	t.Helper()
	body, err := Read(url)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Metrics are those of a page for Prometheus, by name.
type Metrics map[string]*dto.MetricFamily

// Scrape reads a page of metrics.
func Scrape(url string) (Metrics, error) {
	body, err := Read(url)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(body))
}

// Sum returns a metric's value, summed over all series whose labels include the given ones (name, value, …); 0 without
// such a series. A histogram's value is its count.
func (m Metrics) Sum(name string, labels ...string) float64 {
	total := 0.0
	for _, series := range m[name].GetMetric() {
		if labelled(series, labels) {
			total += series.GetGauge().GetValue() + series.GetCounter().GetValue() + series.GetUntyped().GetValue() +
				float64(series.GetHistogram().GetSampleCount())
		}
	}
	return total
}

func labelled(series *dto.Metric, want []string) bool {
	has := map[string]string{}
	for _, l := range series.GetLabel() {
		has[l.GetName()] = l.GetValue()
	}
	for i := 0; i+1 < len(want); i += 2 {
		if has[want[i]] != want[i+1] {
			return false
		}
	}
	return true
}
