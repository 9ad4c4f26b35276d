package integration

import (
	"io"
	"net/http"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// gate.yaml states the role of its second filter in metadata that Envoy adds to each stream. So Weir can warn of a gate
// whose modes hold nothing, and takes no other filter for a gate. Without the role the modes decide. A client's or a
// model server's own header of that name has no effect.
func TestShippedGateNamesItsRole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		header   string // from client and model server
		edit     func(gate map[string]any)
		held     bool
		warnings int
	}{
		{"as shipped", "", nil, true, 0},
		{"somebody claims the main filter's role", "main", nil, true, 0},
		{"somebody claims an unknown role", "nobody", nil, true, 0},
		{"modes that hold nothing", "", func(gate map[string]any) {
			delete(gate, "send_body_without_waiting_for_header_response")
		}, false, 1},
		{"the role of the main filter, and somebody claims the gate's", "gate", func(gate map[string]any) {
			service := gate["grpc_service"].(map[string]any)
			service["initial_metadata"] = []any{map[string]any{"key": "x-weir-role", "value": "main"}}
		}, false, 0},
		{"no role, and somebody claims the main filter's", "main", func(gate map[string]any) {
			delete(gate["grpc_service"].(map[string]any), "initial_metadata")
		}, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const text = "data: a token\n\n"
			server := func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("content-type", "text/event-stream")
				if test.header != "" {
					w.Header().Set("x-weir-role", test.header)
				}
				_, _ = io.WriteString(w, text)
			}
			s := before(t, http.HandlerFunc(server), setup{
				envoys: []string{"gate"}, config: wide,
				edit: func(b envoyrun.Bootstrap) error {
					if test.edit != nil {
						test.edit(b.Filter(envoyrun.GateFilter))
					}
					return nil
				},
			})
			for range 3 { // the first one only shows that there is a gate
				a := ask{body: chat("m", true)}
				if test.header != "" {
					a.header = []string{"x-weir-role", test.header}
				}
				if got := s.send(a); got.status != 200 || got.body != text {
					t.Errorf("got %d %q (%v)", got.status, got.body, got.err)
				}
			}
			s.epp.waitFor(0, "weir_extproc_streams")
			if tokens := s.epp.value("weir_extproc_time_to_first_token_seconds"); (tokens > 0) != test.held {
				t.Errorf("%v first tokens seen, held: %v", tokens, test.held)
			}
			s.epp.told(test.warnings, "cannot hold response headers")
		})
	}
}
