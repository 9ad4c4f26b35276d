package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// With scheduling.policy: mindrouter a request goes to the engine that has its model loaded, by its list of models.
// While that engine holds too many requests, it goes to the idle one.
func TestPointsOfMindRouterOnTheWire(t *testing.T) {
	t.Parallel()
	fixed := modelsim.Fixed(16, 300*time.Millisecond)
	s := start(t, setup{
		models: []modelsim.Config{fixed, fixed},
		config: "profile: mindrouter-fairshare\nrequestQueueController: { slotsPerBackend: 16 }\n" +
			"scheduling: { mindrouter: { loaded: 12, latency: 0, latencyUnknown: 0, throughput: 0 } }",
		fronts: func(engines []string) []string {
			first, err := url.Parse("http://" + engines[0])
			if err != nil {
				t.Fatal(err)
			}
			proxy := httputil.NewSingleHostReverseProxy(first)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/models" {
					_, _ = fmt.Fprint(w, `{"data":[{"id":"tiny","status":{"value":"unloaded"}}]}`)
					return
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			return []string{strings.TrimPrefix(front.URL, "http://"), engines[1]}
		},
	})
	started := func() [2]int { return [2]int{int(s.models[0].Stats().Started), int(s.models[1].Stats().Started)} }
	expect.Eventually(t, "the statement is known", func() error {
		before := started()
		wantServed(t, "a request", s.send(ask{}))
		if now := started(); now[1] == before[1] {
			return fmt.Errorf("%v have started, %v before", now, before)
		}
		return nil
	})
	// One request there leaves 20 points of the queue's 30 and the 12 of the model: more than the other one's 30. Two
	// leave 27.
	before := started()
	answers := make(chan answer)
	for i := range 3 {
		go func() { answers <- s.send(ask{}) }()
		expect.Eventually(t, "it is at an engine", func() error {
			if now := started(); now[0]+now[1] != before[0]+before[1]+i+1 {
				return fmt.Errorf("%v have started, %v before", now, before)
			}
			return nil
		})
	}
	if now := started(); now[0] != before[0]+1 || now[1] != before[1]+2 {
		t.Errorf("of three at once %d went to the engine without the model and %d to the other, want 1 and 2", now[0]-before[0], now[1]-before[1])
	}
	for range 3 {
		wantServed(t, "a request", <-answers)
	}
}
