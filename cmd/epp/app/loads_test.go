package app

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Up to a bound, the endpoints with the largest loads have series of their own. One more series has the sum of the
// others.
func TestEndpointSeriesAreBounded(t *testing.T) {
	o := testOptions()
	o.Endpoints = nil
	for i := range maxEndpointLabels + 3 {
		o.Endpoints = append(o.Endpoints, fmt.Sprintf("10.0.%d.%d:80", i/250, 1+i%250))
	}
	r := start(t, o)
	_, page := r.get("/metrics")
	if n := strings.Count(page, "\nweir_endpoint_in_flight{"); n != maxEndpointLabels+1 {
		t.Errorf("%d series", n)
	}
	own, rest := 0.0, 0.0
	for line := range strings.Lines(page) {
		if _, err := fmt.Sscanf(line, `weir_endpoint_bound{endpoint="other"} %g`, &rest); err != nil {
			_, _ = fmt.Sscanf(line, `weir_endpoint_bound{endpoint="10.0.0.1:80"} %g`, &own)
		}
	}
	if own == 0 || math.Abs(rest-3*own) > 0.001 {
		t.Errorf("the rest is bound by %g, one by %g", rest, own)
	}
}
