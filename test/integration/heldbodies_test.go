package integration

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
)

// The bytes of bodies in Weir's metric are those that it holds while requests wait. In BUFFERED these are none, since
// Envoy has them, unless Weir has to replace the model in them. In FULL_DUPLEX_STREAMED they are all.
func TestBodyBytesAreThoseHeld(t *testing.T) {
	t.Parallel()
	const count, length = 10, 8 << 20
	for _, test := range []struct {
		name, envoy, model string
		held               bool
	}{
		{"BUFFERED", "recommended", "tiny", false},
		{"BUFFERED, another model", "recommended", "alias", true},
		{"FULL_DUPLEX_STREAMED", "full-duplex", "tiny", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := newValve()
			s := start(t, setup{
				envoys: []string{test.envoy}, models: v.one(), flags: []string{"--enable-pprof"},
				config: single + "fairRequestQueue: { queueTTL: 300s }\nmodels: [ { name: alias, targets: [ { name: tiny } ] } ]\n",
			})
			s.begin(ask{})
			s.epp.waitFor(1, "weir_stock_level")
			before := s.epp.heap()
			var waiting []*pending
			for range count {
				body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, test.model, strings.Repeat("x", length))
				waiting = append(waiting, s.begin(ask{body: body}))
			}
			s.epp.waitFor(count, "weir_queue_length")
			reported, grown := s.epp.value("weir_extproc_body_bytes"), s.epp.heap()-before
			t.Logf("reported %.1f MiB, the heap has grown by %.1f MiB", reported/(1<<20), grown/(1<<20))
			want := 0.0
			if test.held {
				want = count * length
			}
			if reported < want || reported > 1.3*want || grown < 0.9*want || grown > 1.3*want+length {
				t.Errorf("of %d bodies of %d bytes %.0f bytes are reported, and the heap has grown by %.0f; want %.0f", count, length, reported, grown, want)
			}
			v.open()
			for _, p := range waiting {
				wantServed(t, "a large request", p.wait())
			}
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_body_bytes")
		})
	}
}

var heapInUse = regexp.MustCompile(`# HeapAlloc = (\d+)`)

// heap returns epp's heap bytes in use. The third collection empties pools.
func (e *epp) heap() float64 {
	e.t.Helper()
	var text string
	for range 3 {
		text = expect.Page(e.t, e.DebugURL+"/debug/pprof/heap?gc=1&debug=1")
	}
	m := heapInUse.FindStringSubmatch(text)
	if m == nil {
		e.t.Fatalf("no size in %.200s", text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		e.t.Fatal(err)
	}
	return n
}
