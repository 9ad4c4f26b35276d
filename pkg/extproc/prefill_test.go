package extproc

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/request"
)

// The header for a decode engine's sidecar has the address of the request's prefill engine, in every mode. A client's
// own header never goes on. The place of the prefill engine is free when the answer begins, once.
func TestPrefillEngineIsNamed(t *testing.T) {
	const engine = "10.0.0.9:8000"
	for _, prefill := range []string{engine, ""} {
		for _, forged := range []bool{false, true} {
			for _, mode := range []string{"NONE/NONE", "STREAMED/NONE", "BUFFERED/NONE", "BUFFERED_PARTIAL/NONE", "FULL_DUPLEX/NONE"} {
				inBubble(t, mode, func(c *Config) { c.RequestBody = request.BodyAlways }, func(c *conversation) {
					c.picker.prefill = prefill
					headers := []string{"x-request-id", "r"}
					if forged {
						headers = append(headers, "x-prefiller-host-port", "6.6.6.6:1")
					}
					c.say(chat(headers...))
					c.say(requestBodyOf(`{"model":"m"}`, true))
					got := c.heard()
					if named := strings.Contains(got, "+x-prefiller-host-port="+engine); named != (prefill != "") || strings.Contains(got, "6.6.6.6") {
						t.Errorf("%s, forged %t, prefill engine %q: %s", mode, forged, prefill, got)
					}
					if forged && prefill == "" && !strings.Contains(got, "-x-prefiller-host-port") {
						t.Errorf("%s: a client's own header goes on: %s", mode, got)
					}
					lease := c.controller.leases[0]
					if lease.prefilled != 0 {
						t.Errorf("%s: the prompt is said to be read before the answer begins", mode)
					}
					c.say(responseHeaders("200", false))
					c.heard()
					want := 0
					if prefill != "" {
						want = 1
					}
					if lease.prefilled != want {
						t.Errorf("%s: said %d times that the prompt is read, want %d", mode, lease.prefilled, want)
					}
				})
			}
		}
	}
}
