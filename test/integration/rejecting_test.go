package integration

import (
	"strings"
	"testing"
)

// While most requests are rejected, weir status is not healthy, with this reason.
func TestRejectingIsNoticed(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: single + "fairRequestQueue: { totalCapacity: 1, flowCapacity: 1 }\n"})
	s.begin(ask{})
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(ask{})
	s.epp.waitFor(1, "weir_queue_length")
	for range 3 {
		wantRejection(t, s.send(ask{}), rejection{status: 503, reason: "flow-full"})
	}
	out, err := runWeir(t, "status", "--address="+strings.TrimPrefix(s.epp.DebugURL, "http://"))
	if err == nil || err.Error() != "exit status 1" || !strings.Contains(out, "rejecting: 100% of the requests of the last ") || !strings.Contains(out, "flow-full (100%)") {
		t.Errorf("%v\n%s", err, out)
	}
	v.open()
	s.epp.settled()
}
