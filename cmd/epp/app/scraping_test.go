package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/leader"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// engineSaying is a model server with a metrics page that the test sets.
func engineSaying(t *testing.T) (address string, page *atomic.Pointer[string]) {
	page = new(atomic.Pointer[string])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := page.Load(); text != nil && r.URL.Path == "/metrics" {
			_, _ = fmt.Fprint(w, *text)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), page
}

func says(running, waiting int) *string {
	text := fmt.Sprintf("vllm:num_requests_running %d\nvllm:num_requests_waiting %d\nvllm:kv_cache_usage_perc 0.25\n", running, waiting)
	return &text
}

// Signals of engines are on the status page and in the metrics. Others' requests count as stock, up to half of the
// bound.
func TestScraping(t *testing.T) {
	address, page := engineSaying(t)
	o := testOptions()
	o.Endpoints = []string{address, "192.0.2.1:8000"}
	o.Profile = "recommended"
	o.Override = func(d *config.Document) {
		slots := config.Slots(20)
		d.RequestQueueController.MinDrain, d.RequestQueueController.SlotsPerBackend = 0, &slots
	}
	o.Scrape.Interval = 100 * time.Millisecond
	r := start(t, o)
	shows := func(lines ...string) {
		t.Helper()
		expect.True(t, strings.Join(lines, ", "), func() bool {
			_, text := r.get("/metrics")
			for _, line := range lines {
				if !strings.Contains(text, strings.ReplaceAll(line, "A", address)+"\n") {
					return false
				}
			}
			return true
		})
	}
	shows(`weir_endpoint_foreign{endpoint="A"} 0`)
	expect.True(t, "failures are counted", func() bool {
		_, text := r.get("/metrics")
		return strings.Contains(text, `weir_scrape_failures_total{reason="status"}`) &&
			!strings.Contains(text, `weir_scrape_failures_total{reason="status"} 0`)
	})
	if _, text := r.get("/metrics"); strings.Contains(text, "weir_endpoint_running{") {
		t.Error("an engine without a statement runs requests")
	}
	page.Store(says(3, 1))
	shows(`weir_endpoint_running{endpoint="A"} 3`, `weir_endpoint_waiting{endpoint="A"} 1`, `weir_endpoint_kv_usage{endpoint="A"} 0.25`,
		`weir_endpoint_foreign{endpoint="A"} 4`, `weir_endpoint_foreign{endpoint="192.0.2.1:8000"} 0`)
	if _, text := r.debug("/statusz"); !strings.Contains(text, " ago") || !strings.Contains(text, "never") {
		t.Errorf("the status page does not show the scrape:\n%s", text)
	}
	page.Store(says(300, 100))
	shows(`weir_endpoint_foreign{endpoint="A"} 10`)
	page.Store(says(0, 0))
	shows(`weir_endpoint_foreign{endpoint="A"} 0`)
}

// Without a path there are no scrapes.
func TestScrapingOff(t *testing.T) {
	o := testOptions()
	o.Scrape.Path = ""
	r := start(t, o)
	if _, text := r.get("/metrics"); strings.Contains(text, "weir_scrape_failures_total") || !strings.Contains(text, "weir_endpoint_bound") {
		t.Error("there are metrics of scrapes")
	}
	if _, text := r.debug("/statusz"); !strings.Contains(text, "never") {
		t.Error("the status page has no endpoint")
	}
}

// Requests of other replicas count once: by their records or by the engine's metrics, whichever is more.
func TestForeignLoadCountsOnce(t *testing.T) {
	snapshot := scheduling.NewSnapshot(1, []scheduling.Endpoint{
		{ID: 3, Key: "a", Address: "10.0.0.1:1", Ready: true},
		{ID: 5, Key: "b", Address: "10.0.0.2:1", Ready: true},
		{ID: 7, Key: "c", Address: "10.0.0.3:1", Ready: true},
	})
	records := []leader.Held{{Requests: 4, Tokens: 10}, {Requests: 2}, {}}
	got := withHeard(snapshot, records, map[scheduling.EndpointID]int{3: 1, 5: 9})
	want := []leader.Held{{Requests: 4, Tokens: 10}, {Requests: 9}, {}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := withHeard(snapshot, nil, map[scheduling.EndpointID]int{7: 2}); fmt.Sprint(got) != fmt.Sprint([]leader.Held{{}, {}, {Requests: 2}}) {
		t.Errorf("without records: %v", got)
	}
	if withHeard(snapshot, nil, nil) != nil {
		t.Error("nothing is known, and something counts")
	}
}
