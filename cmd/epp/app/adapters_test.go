package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// serving is a model server with the given pages by path.
func serving(t *testing.T, pages map[string]string) (address string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := pages[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// A request for a model that an engine lists with a parent has its adapter loaded once. Later requests find it there.
// Slots stated by an engine are its bound.
func TestWhatEnginesState(t *testing.T) {
	tuned := serving(t, map[string]string{
		"/metrics":   *says(0, 0) + `vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 1.7e9` + "\n",
		"/v1/models": `{"data":[{"id":"base","max_model_len":4096,"parent":null},{"id":"chat","parent":"base"}]}`,
	})
	small := serving(t, map[string]string{
		"/metrics": "llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n",
		"/props":   `{"total_slots":6}`,
	})
	o := testOptions()
	o.Endpoints = []string{tuned, small}
	o.Profile = "recommended"
	o.Override = func(d *config.Document) { d.RequestQueueController.MinDrain = 0 }
	o.Scrape.Interval = 100 * time.Millisecond
	r := start(t, o)
	shows := func(line string) {
		t.Helper()
		expect.True(t, line, func() bool {
			_, text := r.get("/metrics")
			return strings.Contains(text, line+"\n")
		})
	}
	shows(fmt.Sprintf(`weir_endpoint_bound{endpoint=%q} 6`, small))
	expect.True(t, "the adapter is known", func() bool { return r.pool.adapters.known("chat") })
	if r.pool.adapters.known("base") {
		t.Error("the base model is an adapter")
	}
	at := ""
	for range 3 {
		stream := r.request(t.Context())
		if address := granted(t, stream); at == "" {
			at = address
		} else if at != address {
			t.Errorf("at %s, after %s", address, at)
		}
	}
	shows(`weir_adapter_placements_total{result="loaded"} 1`)
	shows(`weir_adapter_placements_total{result="there"} 2`)
	if _, text := r.debug("/statusz"); !strings.Contains(text, " of 4") || !strings.Contains(text, "adapters") {
		t.Errorf("the status page does not show adapters:\n%s", text)
	}
}

// Names are known while a ready endpoint states them, and their number is bounded.
func TestAdapterNames(t *testing.T) {
	var a adapterNames
	want := func(what string, known ...bool) {
		t.Helper()
		for i, name := range []string{"a", "b", "c"} {
			if a.known(name) != known[i] {
				t.Errorf("%s: %s is an adapter: %t", what, name, a.known(name))
			}
		}
	}
	a.list(1, []string{"a", "b"})
	a.list(2, []string{"b"})
	s := &scheduling.AdapterState{Loaded: []string{"b", "c"}}
	a.page(2, s)
	a.page(2, s)
	want("listed", true, true, true)
	a.list(1, []string{"b"})
	want("one is not listed any more", false, true, true)
	ready := atomic.Int32{}
	ready.Store(1)
	a.forget(func(id scheduling.EndpointID) bool { return int32(id) == ready.Load() })
	want("one endpoint is left", false, true, false)
	a.forget(func(scheduling.EndpointID) bool { return false })
	want("none is", false, false, false)
	names := make([]string, mostAdapters+10)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	a.list(1, names)
	if len(a.counts) != mostAdapters || a.known(names[len(names)-1]) {
		t.Errorf("%d names", len(a.counts))
	}
	a.list(1, nil)
	if len(a.counts) != 0 || a.known("n0") {
		t.Errorf("%d names are left", len(a.counts))
	}
}
