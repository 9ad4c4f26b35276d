package integration

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// valve holds requests at model servers until the test lets them through, so that the test sees the order of grants
// without a clock. It does not hold requests of disconnected clients.
type valve struct {
	passes chan struct{}
}

func newValve() *valve { return &valve{passes: make(chan struct{})} }

// on makes a model server's complete requests wait at the valve.
func (v *valve) on(cfg modelsim.Config) modelsim.Config {
	// Match is called in the request's own goroutine and, without any other quirk, changes nothing.
	cfg.Quirk.Match = func(r *http.Request) bool {
		select {
		case <-v.passes:
		case <-r.Context().Done():
		}
		return false
	}
	return cfg
}

// pass lets n requests through. It waits for missing ones, and one that never arrives ends the run.
func (v *valve) pass(n int) {
	for i := range n {
		select {
		case v.passes <- struct{}{}:
		case <-time.After(5 * patience):
			panic(fmt.Sprintf("%d of %d requests have come to the valve", i, n))
		}
	}
}

// open lets all requests through from now on.
func (v *valve) open() { close(v.passes) }

// recorded returns a model server with the given slots that answers at once, and records the order of requests by their
// header x-tenant.
func recorded(slots int) modelsim.Config {
	cfg := modelsim.Fixed(slots, 0)
	cfg.Records = 8192
	cfg.TagHeader = "x-tenant"
	return cfg
}

// byTenant makes x-tenant the flow. Unlike the ecosystem's fairness header it is not removed before the model server.
const byTenant = `flows: { key: ["header:x-tenant"] }` + "\n"

// from returns a request of a tenant.
func from(tenant string) ask { return ask{header: []string{"x-tenant", tenant}} }

// tenants returns the tenants of the requests at a model server, in order of arrival.
func tenants(m *modelsim.Server) []string {
	var order []string
	for _, r := range m.Records() {
		order = append(order, r.Tag)
	}
	return order
}

// wantServed fails the test unless the request was answered 200.
func wantServed(t *testing.T, what string, got answer) {
	t.Helper()
	if got.err != nil || got.status != http.StatusOK {
		t.Errorf("%s: got %d %q %v: %s", what, got.status, got.reason(), got.err, got.body)
	}
}
