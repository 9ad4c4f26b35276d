package loadgen

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A stream's TTFT is the time of its first data line: headers, comments and event names do not count.
func TestTTFTIsTheFirstDataLine(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("accept: %q", r.Header.Get("Accept"))
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, part := range []string{"", ": ping\n\n", "event: start\n", "da", "ta: {}\n\n", "data: {}\n\n", "data: [DONE]\n\n"} {
			time.Sleep(100 * time.Millisecond)
			_, _ = w.Write([]byte(part))
			_ = http.NewResponseController(w).Flush()
		}
	}, func(b *bubble) {
		w := load(ClosedLoop{Workers: 1})
		w.Requests, w.Request.Stream = 1, true
		r := b.run(w)[0]
		if r.Headers != 100*time.Millisecond || r.TTFT() != 500*time.Millisecond || r.Total != 700*time.Millisecond {
			b.Errorf("headers %v, TTFT %v, total %v; want 100 ms, 500 ms, 700 ms", r.Headers, r.TTFT(), r.Total)
		}
		if !r.OK() || r.Events != 3 || !r.Done || r.Bytes != int64(len(": ping\n\nevent: start\ndata: {}\n\ndata: {}\n\ndata: [DONE]\n\n")) {
			b.Errorf("%+v", r)
		}
	})
}

// For other bodies it is the time of the first byte, and the end for an empty one.
func TestTTFTOfOtherBodies(t *testing.T) {
	for body, want := range map[string]time.Duration{"{}": 300 * time.Millisecond, "": 600 * time.Millisecond} {
		inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(300 * time.Millisecond)
			_, _ = w.Write([]byte(body))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(300 * time.Millisecond)
		}, func(b *bubble) {
			w := load(ClosedLoop{Workers: 1})
			w.Requests = 1
			if r := b.run(w)[0]; !r.OK() || r.Headers != 0 || r.TTFT() != want || r.Total != 600*time.Millisecond {
				b.Errorf("%q: TTFT %v, want %v: %+v", body, r.TTFT(), want, r)
			}
		})
	}
}

// An answer with 2xx to a request for a stream has to be a stream. A rejection need not be.
func TestNotAStream(t *testing.T) {
	for _, test := range []struct {
		status     int
		kind, body string
		want       string
	}{
		{200, "application/json", "{}", "not a stream"},
		{200, "text/event-stream", ": nothing\n\n", "not a stream"},
		{200, "text/event-stream", "data: x\n\n", ""},
		{503, "application/json", "{}", ""},
	} {
		inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.kind)
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
		}, func(b *bubble) {
			w := load(ClosedLoop{Workers: 1})
			w.Requests, w.Request.Stream = 1, true
			if r := b.run(w)[0]; r.Fault() != test.want {
				b.Errorf("%d %s %q: fault %q, want %q", test.status, test.kind, test.body, r.Fault(), test.want)
			}
		})
	}
}

// The scanner's result does not depend on the cuts between reads.
func TestScannerAcrossEverySplit(t *testing.T) {
	for stream, want := range map[string]struct {
		lines int
		done  bool
	}{
		"data: a\n\ndata:b\r\n\r\n: data: no\nevent: data:\nid: 1\n\n": {2, false},
		"data: a\n\ndata: [DONE]\n\n":                                  {2, true},
		"data:[DONE]\r\n\r\n":                                          {1, true},
		"data: [DONE]\n\ndata: more\n\n":                               {2, false},
		"data: [DONE] and a line that is much longer\n":                {1, false},
		"data: [DONE]": {1, false}, // an incomplete line
		" data: indented\nxdata: y\nDATA: z\ndat\na: q\n": {0, false},
		"data\n": {0, false},
		"data: " + strings.Repeat("x", 5000) + "\n\ndata: [DONE]\n": {2, true},
	} {
		for size := 1; size <= min(len(stream), 40); size++ {
			var s dataScanner
			for at := 0; at < len(stream); at += size {
				s.scan([]byte(stream[at:min(at+size, len(stream))]))
			}
			if s.lines != want.lines || s.done != want.done {
				t.Errorf("%.40q in pieces of %d: %d lines, done %v; want %v", stream, size, s.lines, s.done, want)
				break
			}
		}
	}
}
