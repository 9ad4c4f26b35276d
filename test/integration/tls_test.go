package integration

import (
	"fmt"
	"strings"
	"testing"
)

// The shipped Envoy configurations have no TLS to Weir, which has it by default. The filter fails open, so that clients
// notice nothing: Weir says so itself, once, and how to mend it.
func TestPlaintextEnvoyAtTheTLSPort(t *testing.T) {
	s := start(t, setup{flags: []string{"--secure-serving"}})
	for range 3 {
		if got := s.send(ask{}); got.status != 200 {
			t.Errorf("got %d %v %s, want an answer past Weir", got.status, got.err, got.body)
		}
	}
	const told = "a plaintext client at the TLS port"
	eventually(t, "it is told", func() error {
		if log := s.epp.log.String(); !strings.Contains(log, told) || !strings.Contains(log, "--secure-serving=false") {
			return fmt.Errorf("the log is %s", log)
		}
		return nil
	})
	if n := strings.Count(s.epp.log.String(), told); n != 1 {
		t.Errorf("told %d times", n)
	}
	if n := s.epp.value("weir_extproc_streams_total"); n != 0 {
		t.Errorf("%v streams", n)
	}
}
