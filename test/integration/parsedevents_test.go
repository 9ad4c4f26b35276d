package integration

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// parsing limits the number of a stream's events that Envoy parses, as docs/tokens.md shows.
func parsing(events float64) func(envoyrun.Bootstrap) error {
	return func(b envoyrun.Bootstrap) error {
		read := envoyrun.Object(b.Cluster(envoyrun.ModelServersCluster), "typed_extension_protocol_options",
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "http_filters", 0,
			"typed_config", "response_handling", "token_usage")
		if read == nil {
			return fmt.Errorf("nothing reads the usage")
		}
		read["limits"] = map[string]any{"max_parsed_sse_events": events}
		return nil
	}
}

// If Envoy parses only three events of a stream, streams of chat completions and completions, whose events have no
// names, are charged as without usage. All others are charged exactly: by the names, Envoy parses only the events that
// can have usage, three of messages and one of responses.
func TestThreeParsedEvents(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		envoys: []string{"recommended"},
		// Tokens 20 ms apart: Envoy counts the events between reads, and parses all events of one read.
		models: []modelsim.Config{modelsim.Fixed(4, 600*time.Millisecond)},
		config: inTokens, edit: parsing(3),
	})
	var in, out, unknown float64
	for _, c := range []struct {
		path, body string
		unnamed    bool
	}{
		{path: "/v1/chat/completions", body: `"messages":[{"role":"user","content":"12345678"}],"max_tokens":27`, unnamed: true},
		{path: "/v1/completions", body: `"prompt":"12345678","max_tokens":29`, unnamed: true},
		{path: "/v1/messages", body: `"messages":[{"role":"user","content":"12345678"}],"max_tokens":31`},
		{path: "/v1/responses", body: `"input":"12345678","max_output_tokens":33`},
	} {
		for _, how := range []string{`"stream":false`, askingForUsage} {
			got := s.send(ask{path: c.path, body: `{"model":"tiny",` + c.body + "," + how + "}"})
			wantServed(t, c.path, got)
			hasIn, hasOut := lastNumber(t, inputIn, got.body), lastNumber(t, outputIn, got.body)
			if how == askingForUsage && c.unnamed {
				unknown++
			} else {
				in, out = in+hasIn, out+hasOut
			}
			s.epp.settled()
			s.epp.waitFor(unknown, "weir_extproc_usage_unknown_total")
			if gotIn, gotOut := s.epp.value("weir_extproc_usage_tokens_total", "kind", "input"),
				s.epp.value("weir_extproc_usage_tokens_total", "kind", "output"); gotIn != in || gotOut != out {
				t.Fatalf("%s %s: %v tokens in and %v out, want %v and %v", c.path, how, gotIn, gotOut, in, out)
			}
		}
	}
}

var (
	inputIn  = regexp.MustCompile(`"(?:prompt|input)_tokens":(\d+)`)
	outputIn = regexp.MustCompile(`"(?:completion|output)_tokens":(\d+)`)
)

// lastNumber returns the last number in an answer that the pattern finds.
func lastNumber(t *testing.T, pattern *regexp.Regexp, body string) float64 {
	t.Helper()
	all := pattern.FindAllStringSubmatch(body, -1)
	if len(all) == 0 {
		t.Fatalf("no usage in %q", body)
	}
	n, err := strconv.ParseFloat(all[len(all)-1][1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const askingForUsage = `"stream":true,"stream_options":{"include_usage":true}`
