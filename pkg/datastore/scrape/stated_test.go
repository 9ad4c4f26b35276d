package scrape

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// An engine's statement is the number of requests that its operator allows, or that it has slots for.
func TestStatedSlots(t *testing.T) {
	for text, want := range map[string]int32{
		`{"total_slots":4,"default_generation_settings":{}}`:                                                                                          4,
		`{"max_running_requests":128,"internal_states":[{"effective_max_running_requests_per_dp":64}]}`:                                               128,
		`{"max_running_requests":null,"internal_states":[{"effective_max_running_requests_per_dp":48},{"effective_max_running_requests_per_dp":48}]}`: 96,
		`{"max_running_requests":null,"internal_states":[{"effective_max_running_requests_per_dp":2048}]}`:                                            0, // its default
		`{"max_running_requests":null,"internal_states":[{}]}`:                                                                                        0,
		`{"version":"0.5"}`:     0,
		`null`:                  0,
		`{"total_slots":65536}`: 65536,
	} {
		if got, err := statedBy([]byte(text)); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		`{"total_slots":0}`, `{"total_slots":-1}`, `{"total_slots":1.5}`, `{"total_slots":"4"}`, `{"max_running_requests":1e9}`,
		`{"total_slots":1e300}`, `[`, `<html>`, `{"internal_states":{}}`,
	} {
		if got, err := statedBy([]byte(text)); reasonOf(err) != BadValue || got != 0 {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

// SGLang's older path is tried where the newer one is unknown; other engines are not asked.
func TestStatedPaths(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked = append(asked, r.URL.Path); r.URL.Path {
		case "/get_server_info":
			_, _ = io.WriteString(w, `{"max_running_requests":24}`)
		case "/props":
			_, _ = io.WriteString(w, `{"total_slots":2,"padding":"`+strings.Repeat("x", mostList)+`"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	f := newFetcher(DefaultConfig())
	defer f.close()
	if got, err := f.stated(t.Context(), "SGLang", server.URL); got != 24 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := f.stated(t.Context(), "llama.cpp", server.URL); got != 0 || reasonOf(err) != TooLarge {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := f.stated(t.Context(), "vLLM", server.URL); got != 0 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if got := strings.Join(asked, " "); got != "/server_info /get_server_info /props" {
		t.Errorf("asked %s", got)
	}
}

// Slots are told with the engine's signals, and asked again every 30 s. An absurd statement changes nothing, and costs one
// warning.
func TestStatedSlotsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		text, told, asked := `{"total_slots":4}`, int32(0), 0
		w := newWatch()
		parts := w.parts()
		parts.Listed = func(scheduling.EndpointID, Listing) {}
		parts.Told = func(_ scheduling.EndpointID, s scheduling.Signals, _ int) {
			mu.Lock()
			defer mu.Unlock()
			told = s.Slots
		}
		s := New(DefaultConfig(), parts, w.log())
		s.fetch = func(context.Context, string) (Reading, error) { return Reading{Engine: "llama.cpp"}, nil }
		s.listing = func(context.Context, string) (Listing, error) { return Listing{}, nil }
		s.stated = func(_ context.Context, engine, root string) (int32, error) {
			mu.Lock()
			defer mu.Unlock()
			if asked++; engine != "llama.cpp" || root != "http://10.0.0.1:80" {
				t.Errorf("asked %s at %s", engine, root)
			}
			return statedBy([]byte(text))
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		defer func() { stop(); <-done }()
		after := func(d time.Duration, next string, want int32, warnings int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if told != want || len(w.logged()) != warnings {
				t.Errorf("told %d, want %d; logged %v", told, want, w.logged())
			}
			text = next
		}
		s.Follow(poolOf("10.0.0.1:80"))
		after(1100*time.Millisecond, `{"total_slots":-4}`, 4, 0)
		after(5*time.Minute, `{"total_slots":8}`, 4, 1)
		after(32*time.Second, `{}`, 8, 1)
		after(32*time.Second, ``, 0, 1)
		if asked < 12 || asked > 15 {
			t.Errorf("asked %d times in 6 min", asked)
		}
	})
}
