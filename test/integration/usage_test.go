package integration

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// usageAnswer is an answer that reports 7 and 5 tokens, or has no readable usage.
type usageAnswer struct {
	name    string
	header  []string // name, value, …
	begin   string
	end     string // which is cut anywhere
	unknown bool   // its usage
	reset   bool   // in the middle of its end
}

var (
	events       = []string{"content-type", "text/event-stream"}
	usageAnswers = []usageAnswer{
		{name: "chat, JSON", begin: `{"choices":[{"message":{"content":"\"usage\":{"}}],`, end: `"usage":{"prompt_tokens":7,"total_tokens":12,"completion_tokens":5}}`},
		{
			name: "chat", header: events, begin: "data: {\"choices\":[{\"delta\":{\"content\":\"usage\"}}]}\n\n",
			end: "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n",
		},
		{
			name: "messages", header: events,
			begin: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":0}}}\n\n",
			end:   "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":7,\"output_tokens\":5}}\n\nevent: message_stop\ndata: {}\n\n",
		},
		{
			name: "responses", header: events, begin: "event: response.created\ndata: {\"response\":{\"usage\":null}}\n\n",
			end: "event: response.completed\ndata: {\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":5}}}\n\n",
		},
		{name: "20 MB of JSON", begin: `{"x":"` + strings.Repeat("abcdefgh", 20<<17) + `",`, end: `"usage":{"input_tokens":7,"output_tokens":5}}`},
		{name: "no JSON", begin: "{]{\"usage\":\x00", end: `"prompt_tokens":7,"completion_tokens":5}}`, unknown: true},
		{name: "compressed", header: append(events, "content-encoding", "gzip"), begin: zipped("data: x\n\n"), unknown: true},
		{name: "reset", header: events, begin: "data: {}\n\n", end: "data: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}", reset: true, unknown: true},
	}
)

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// serveUsage answers with the answer named by the request, its end cut at the requested place.
func serveUsage(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	i, _ := strconv.Atoi(r.Header.Get("x-answer"))
	cut, _ := strconv.Atoi(r.Header.Get("x-cut"))
	a := usageAnswers[i]
	w.Header().Set("content-type", "application/json")
	for i := 0; i < len(a.header); i += 2 {
		w.Header().Set(a.header[i], a.header[i+1])
	}
	_, _ = io.WriteString(w, a.begin+a.end[:cut])
	_ = http.NewResponseController(w).Flush()
	time.Sleep(time.Millisecond) // so that Envoy reads the parts apart
	if a.reset {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, a.end[cut:])
}

// In both modes that show answers Weir reads their usage, for any cuts, and changes no byte. Unreadable usage is
// unknown, and no part of an answer is kept, however large.
func TestUsageFromBodies(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"streamed", "full-duplex"} {
		t.Run(config, func(t *testing.T) {
			s := before(t, http.HandlerFunc(serveUsage), setup{
				envoys: []string{config}, config: wide + "cost: tokens\n", flags: []string{"--enable-pprof"},
			})
			base := s.epp.resources()
			known, unknown := 0, 0
			var clients sync.WaitGroup
			turns := make(chan struct{}, 16)
			for i, a := range usageAnswers {
				step := 3
				if len(a.begin) > 1<<20 {
					step = 20
				}
				for cut := 0; cut <= len(a.end); cut += step {
					if a.unknown {
						unknown++
					} else {
						known++
					}
					turns <- struct{}{}
					clients.Go(func() {
						defer func() { <-turns }()
						got := s.send(ask{header: []string{"x-answer", fmt.Sprint(i), "x-cut", fmt.Sprint(cut)}})
						want := a.begin + a.end
						switch {
						case a.reset && got.err == nil && got.status == 200:
							t.Errorf("%s, cut at %d: it ended well", a.name, cut)
						case a.reset && got.status == 200 && !strings.HasPrefix(want, got.body):
							t.Errorf("%s, cut at %d: %q", a.name, cut, got.body)
						case !a.reset && (got.err != nil || got.body != want):
							t.Errorf("%s, cut at %d: %d bytes of %d, %v", a.name, cut, len(got.body), len(want), got.err)
						}
					})
				}
			}
			clients.Wait()
			s.epp.settled()
			s.epp.waitFor(float64(7*known), "weir_extproc_usage_tokens_total", "kind", "input")
			s.epp.waitFor(float64(5*known), "weir_extproc_usage_tokens_total", "kind", "output")
			s.epp.waitFor(float64(unknown), "weir_extproc_usage_unknown_total")
			s.epp.waitFor(float64(7*known), "weir_flow_tokens_total", "kind", "input")
			s.epp.waitFor(float64(5*known), "weir_flow_tokens_total", "kind", "output")
			s.epp.unburdened(base)
		})
	}
}
