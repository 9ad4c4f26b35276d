package integration

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// An idle pool is served in turn, each request at the address that Weir named for it.
func TestDestination(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.config, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{envoys: []string{m.config}, models: []modelsim.Config{recorded(8), recorded(8), recorded(8)}})
			for range 12 {
				wantServed(t, "a request", s.send(ask{}))
				s.epp.waitFor(0, "weir_stock_level")
			}
			for _, server := range s.models {
				if n := len(server.Records()); n != 4 {
					t.Errorf("a server got %d of 12, want a third", n)
				}
				for _, r := range server.Records() {
					// The request goes to the first of the list. The others are fallbacks.
					first, _, _ := strings.Cut(r.Header.Get("x-gateway-destination-endpoint"), ",")
					if first != server.Address() {
						t.Errorf("%s was named, %s serves", first, server.Address())
					}
				}
			}
			s.epp.settled()
		})
	}
}

// walking is the configuration in config/weir.yaml of the list for the shipped Envoys, whose retries go through it.
const walking = "scheduling: { fallbacks: 2 }\n"

// The destination is an ordered list. If a model server has just died, Envoy's retry goes to the next one, and the
// client notices nothing.
func TestFallbacks(t *testing.T) {
	t.Parallel()
	s := start(t, setup{config: walking, models: []modelsim.Config{recorded(8), recorded(8), recorded(8)}})
	dead := s.models[1]
	dead.Close()
	for range 12 {
		wantServed(t, "a request", s.send(ask{}))
	}
	s.epp.settled()
	if a, c := len(s.models[0].Records()), len(s.models[2].Records()); a+c != 12 || a < 4 || c < 4 {
		t.Errorf("the two that live got %d and %d of 12", a, c)
	}
	if retried := s.logged("attempts", 2.0); retried["upstream"] == dead.Address() {
		t.Errorf("the second attempt went to the dead one: %v", retried)
	}
}
