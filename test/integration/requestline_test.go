package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
)

// decision is the content of a line about one request, in Weir's log or in Envoy's.
type decision struct {
	Msg      string
	Level    string
	ID       string
	Flow     string
	Tier     string
	Model    string
	Wait     string
	WaitMS   *float64 `json:"wait_ms"`
	Bypass   *bool
	Endpoint string
	Outcome  string
	Status   int
	Error    string
}

// lineOf waits for the one line about the request with that id.
func lineOf(t *testing.T, where, id string, read func() (string, error)) decision {
	t.Helper()
	var found decision
	expect.Eventually(t, "a line of "+id+" in "+where, func() error {
		text, err := read()
		if err != nil {
			return err
		}
		n := 0
		for line := range strings.Lines(text) {
			var d decision
			if json.Unmarshal([]byte(line), &d) == nil && d.ID == id {
				found, n = d, n+1
			}
		}
		if n != 1 {
			return fmt.Errorf("%d lines", n)
		}
		return nil
	})
	return found
}

// Each request has one line in Weir's log at --v=1, and the same in Envoy's access log as shipped: the rejected tenant,
// the wait of a request, and its destination.
func TestWhoWasRejected(t *testing.T) {
	t.Parallel()
	for _, envoy := range []string{"recommended", "full-duplex"} {
		t.Run(envoy, func(t *testing.T) {
			v := newValve()
			s := start(t, setup{
				envoys: []string{envoy}, models: v.one(), flags: []string{"--v=1"},
				config: byTenant + single + "fairRequestQueue: { totalCapacity: 2, flowCapacity: 1 }\nresponses: { metadata: true }\n",
			})
			request := func(tenant, id string) ask {
				return ask{header: []string{"x-tenant", tenant, "x-request-id", id}}
			}
			first := s.begin(request("alice", "first"))
			s.epp.waitFor(1, "weir_stock_level")
			waits := s.begin(request("noisy", "waits"))
			s.epp.waitFor(1, "weir_queue_length")
			if got := s.send(request("noisy", "one-too-many")); got.reason() != "flow-full" {
				t.Fatalf("got %d %q", got.status, got.reason())
			}
			const forger, forged = "a \"b\",\"outcome\":\"x", "y\",\"outcome\":\"z"
			three := s.begin(request(forger, forged))
			s.epp.waitFor(2, "weir_queue_length")
			v.open()
			wantServed(t, "the first", first.wait())
			wantServed(t, "who waited", waits.wait())
			wantServed(t, "who forges", three.wait())
			s.epp.settled()

			address := s.models[0].Address()
			yes, no := true, false
			for _, want := range []decision{
				{ID: "first", Flow: "alice", Endpoint: address, Outcome: "dispatched", Status: 200, Bypass: &yes},
				{ID: "waits", Flow: "noisy", Endpoint: address, Outcome: "dispatched", Status: 200, Bypass: &no},
				{ID: forged, Flow: forger, Endpoint: address, Outcome: "dispatched", Status: 200, Bypass: &no},
				{ID: "one-too-many", Flow: "noisy", Outcome: "flow-full", Status: 503, Bypass: &no},
			} {
				inWeir := lineOf(t, "Weir's log", want.ID, func() (string, error) { return s.epp.Log.String(), nil })
				inEnvoy := lineOf(t, "Envoy's log", want.ID, func() (string, error) {
					lines, err := s.envoy().AccessLog()
					return strings.Join(lines, "\n"), err
				})
				for where, got := range map[string]decision{"Weir": inWeir, "Envoy": inEnvoy} {
					if got.Flow != want.Flow || got.Endpoint != want.Endpoint || got.Outcome != want.Outcome ||
						got.Status != want.Status || got.Bypass == nil || *got.Bypass != *want.Bypass || got.Tier != "critical" {
						t.Errorf("%s says %+v of %s, want %+v", where, got, want.ID, want)
					}
				}
				waited := want.Status == 200 && !*want.Bypass
				if inEnvoy.WaitMS == nil || (*inEnvoy.WaitMS > 0) != waited || (inWeir.Wait != "0s") != waited {
					t.Errorf("%s waited %v, %v", want.ID, inWeir.Wait, inEnvoy.WaitMS)
				}
				if (inWeir.Error != "") != (want.Status == 503) || inWeir.Level == "" {
					t.Errorf("%s: %+v", want.ID, inWeir)
				}
			}
		})
	}
}
