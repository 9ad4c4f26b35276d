package integration

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// What Envoy's access log tells of answers of every shape: their numbers exactly, and of what has none, or nonsense, that.
func TestShapesInTheLog(t *testing.T) {
	t.Parallel()
	const (
		json   = "application/json"
		events = "text/event-stream"
	)
	type counts struct{ input, output, cached float64 }
	long := strings.Repeat("x", 100_000)
	answers := []struct {
		name, kind, body, encoding string
		want                       counts
		outcome                    string
	}{
		{
			name: "chat", kind: json + "; charset=utf-8", outcome: "used", want: counts{120, 30, 20},
			body: "{\n  \"choices\": [],\n  \"usage\": {\"prompt_tokens\": 120, \"completion_tokens\": 30, \"prompt_tokens_details\": {\"cached_tokens\": 20}}\n}",
		},
		{
			name: "messages", kind: json, outcome: "used", want: counts{120, 30, 20},
			body: `{"type":"message","usage":{"input_tokens":100,"cache_read_input_tokens":20,"output_tokens":30}}`,
		},
		{
			name: "responses", kind: json, outcome: "used", want: counts{120, 30, 20},
			body: `{"object":"response","output":["` + long + `"],"usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":20},"output_tokens":30}}`,
		},
		{
			name: "no details", kind: json, outcome: "used", want: counts{120, 30, 0},
			body: `{"usage":{"prompt_tokens":120,"completion_tokens":30,"prompt_tokens_details":null}}`,
		},
		{
			name: "streamed chat", kind: events + "; charset=utf-8", outcome: "used", want: counts{120, 30, 20},
			body: ": a comment\r\n\r\ndata: {\"choices\":[{}],\"usage\":null}\r\n\r\n" +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":30,\"prompt_tokens_details\":{\"cached_tokens\":20}}}\r\n\r\ndata: [DONE]\r\n\r\n",
		},
		{
			name: "streamed chat with usage in every chunk", kind: events, outcome: "used", want: counts{120, 2, 0},
			body: "data: {\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":1}}\n\ndata: {\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":2}}\n\n",
		},
		{
			name: "streamed messages", kind: events, outcome: "used", want: counts{120, 30, 20},
			body: "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":90,\"cache_read_input_tokens\":20,\"cache_creation_input_tokens\":10,\"output_tokens\":1}}}\n\n" +
				"event: message_delta\ndata: {\"usage\":{\"output_tokens\":30}}\n\n",
		},
		{
			name: "streamed responses", kind: events, outcome: "used", want: counts{120, 30, 20},
			body: "data: {\"response\":{\"usage\":null}}\n\ndata: {\"response\":{\"output\":[\"" + long +
				"\"],\"usage\":{\"input_tokens\":120,\"input_tokens_details\":{\"cached_tokens\":20},\"output_tokens\":30}}}\n\n",
		},
		{
			name: "a stream that ends without an empty line", kind: events, outcome: "empty",
			body: "data: {\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":30}}",
		},
		{name: "no usage", kind: json, outcome: "empty", body: `{"choices":[]}`},
		{name: "a stream without usage", kind: events, outcome: "empty", body: "data: {\"choices\":[{}]}\n\ndata: [DONE]\n\n"},
		{name: "half a document", kind: json, outcome: "empty", body: `{"usage":{"prompt_tokens":120,"completion_tokens":30}`},
		{name: "compressed", kind: json, encoding: "gzip", outcome: "empty", body: "\x1f\x8b\x08"},
		{name: "text", kind: "text/plain", outcome: "empty", body: `{"usage":{"prompt_tokens":120,"completion_tokens":30}}`},
		{name: "nothing", kind: json, outcome: "empty"},
		{name: "below zero", kind: json, outcome: "invalid", body: `{"usage":{"prompt_tokens":120,"completion_tokens":-30}}`},
		{name: "text for a number", kind: json, outcome: "invalid", body: `{"usage":{"prompt_tokens":"120","completion_tokens":30}}`},
		{name: "absurd", kind: json, outcome: "used", want: counts{1 << 40, 0, 0}, body: `{"usage":{"prompt_tokens":1e300,"completion_tokens":0}}`},
		{name: "a forged record", kind: json, outcome: "empty", body: `{"weir":{"request":"x"},"weir.usage":{"input":1,"output":1}}`},
	}
	s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n, err := strconv.Atoi(r.Header.Get("x-answer"))
		if err != nil {
			panic(err)
		}
		w.Header().Set("content-type", answers[n].kind)
		if e := answers[n].encoding; e != "" {
			w.Header().Set("content-encoding", e)
		}
		_, _ = io.WriteString(w, answers[n].body)
	}), setup{envoys: []string{"als"}, config: byLog})
	tokens := func() (c counts) {
		families, err := s.epp.scrape()
		if err != nil {
			t.Fatal(err)
		}
		kind := func(name string) float64 { return sum(families, "weir_extproc_usage_tokens_total", "kind", name) }
		return counts{kind("input"), kind("output"), kind("cached")}
	}
	outcomes := map[string]float64{}
	for i, a := range answers {
		was := tokens()
		got := s.send(ask{header: []string{"x-answer", fmt.Sprint(i)}})
		if wantServed(t, a.name, got); got.body != a.body {
			t.Errorf("%s: the answer came as %.100q", a.name, got.body)
		}
		outcomes[a.outcome]++
		s.epp.waitFor(float64(i+1), "weir_extproc_usage_records_total")
		if n := s.epp.value("weir_extproc_usage_records_total", "outcome", a.outcome); n != outcomes[a.outcome] {
			t.Errorf("%s: not counted as %s", a.name, a.outcome)
			outcomes[a.outcome] = n
		}
		if is := tokens(); is != (counts{was.input + a.want.input, was.output + a.want.output, was.cached + a.want.cached}) {
			t.Errorf("%s: was %v, is %v, want %v more", a.name, was, is, a.want)
		}
	}
	s.epp.waitFor(0, "weir_extproc_usage_awaited")
	s.epp.settled()
}
