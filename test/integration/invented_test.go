package integration

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Ten waiting requests for invented models lock a real one out where each is a flow of its own, and not where they share
// one: their eleventh is turned away instead.
func TestInventedModelsLockNobodyOut(t *testing.T) {
	for _, unknown := range []string{"own", "shared"} {
		t.Run(unknown, func(t *testing.T) {
			v := newValve()
			s := start(t, setup{models: v.one(), config: single + fmt.Sprintf(
				"fairRequestQueue: { totalCapacity: 100, flowCapacity: 10 }\nflows: { unknownModels: %s }\nmodels: [ { name: tiny } ]\n", unknown)})
			s.begin(ask{})
			s.epp.waitFor(1, "weir_stock_level")
			for i := range 10 {
				s.begin(ask{body: chat(fmt.Sprintf("zz%d", i), false)})
			}
			s.epp.waitFor(10, "weir_queue_length")
			if unknown == "own" {
				wantRejection(t, s.send(ask{}), rejection{status: 503, reason: "queue-full"})
			} else {
				s.begin(ask{})
				s.epp.waitFor(11, "weir_queue_length")
				s.epp.waitFor(10, "weir_queue_length", "model", "unknown")
				wantRejection(t, s.send(ask{body: chat("zz10", false)}), rejection{status: 503, reason: "flow-full"})
			}
			v.open()
			s.epp.settled()
		})
	}
}

// Flow keys that are secrets are shown nowhere: not on a page, in a metric or in the log.
func TestSecretFlowKeysAreShownNowhere(t *testing.T) {
	const secret = "sk-very-secret"
	v := newValve()
	s := start(t, setup{
		models: v.one(), flags: []string{"--hash-flow-keys", "--v=1"},
		config: "flows: { key: [\"header:x-tenant\"], weights: { " + secret + ": 3 } }\n" + single +
			"tenantPolicies: { " + secret + ": { maxClass: Critical } }\n",
	})
	s.begin(from(secret))
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(from(secret))
	s.epp.waitFor(1, "weir_queue_length")
	shown := 0
	for _, page := range []string{
		s.epp.metrics + "/metrics", s.epp.debug + "/debug/flows", s.epp.debug + "/debug/config", s.epp.debug + "/statusz",
	} {
		response, err := http.Get(page)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if strings.Contains(string(text), secret) {
			t.Errorf("%s shows the key", page)
		}
		shown += strings.Count(string(text), "sha256:")
	}
	v.open()
	s.epp.settled()
	if strings.Contains(s.epp.log.String(), secret) {
		t.Error("the log has the key")
	}
	if shown == 0 || !strings.Contains(s.epp.log.String(), "sha256:") {
		t.Error("nothing shows the hash")
	}
}
