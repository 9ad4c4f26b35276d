package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// byLog charges tokens, by the usage that Envoy's access log tells.
const byLog = inTokens + `usage: als
requestBody: always
`

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

// toLog changes the configuration of Envoy's access log for Weir.
func toLog(change func(b envoyrun.Bootstrap, log map[string]any)) func(envoyrun.Bootstrap) error {
	return func(b envoyrun.Bootstrap) error {
		log := envoyrun.Object(b.ConnectionManager(), "access_log", 1, "typed_config", "common_config")
		if log == nil {
			return fmt.Errorf("no access log for Weir")
		}
		change(b, log)
		return nil
	}
}

// addReplica adds a cluster like Weir's, with another address.
func addReplica(t *testing.T, b envoyrun.Bootstrap, name, address string) {
	t.Helper()
	text, err := json.Marshal(b.Cluster(envoyrun.WeirCluster))
	var cluster map[string]any
	if err == nil {
		err = json.Unmarshal(text, &cluster)
	}
	host, port, splitErr := net.SplitHostPort(address)
	if err = errors.Join(err, splitErr); err != nil {
		t.Fatal(err)
	}
	cluster["name"] = name
	load := envoyrun.Object(cluster, "load_assignment")
	load["cluster_name"] = name
	at := envoyrun.Object(load, "endpoints", 0, "lb_endpoints", 0, "endpoint", "address", "socket_address")
	at["address"], at["port_value"] = host, json.Number(port)
	resources := envoyrun.Object(b, "static_resources")
	resources["clusters"] = append(envoyrun.List(resources, "clusters"), cluster)
}

const askingForUsage = `"stream":true,"stream_options":{"include_usage":true}`

// Envoy's access log tells Weir exactly the usage that clients see, of every API's answers, whole and streamed, once each,
// with either HTTP version and as soon as the answer has ended. So it does if nothing says that the log is there (auto).
func TestUsageFromTheLog(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"als", "auto"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{
				envoys: []string{"als"}, models: []modelsim.Config{modelsim.Fixed(4, 5*time.Millisecond)},
				config: inTokens + "requestBody: always\nusage: " + way + "\n",
			})
			if way == "auto" { // the first request is named to find out, and not waited for
				wantServed(t, "the first", s.send(ask{}))
				eventually(t, "its record comes", func() error {
					if n := s.epp.value("weir_extproc_usage_records_total"); n != 1 {
						return fmt.Errorf("%v records", n)
					}
					return nil
				})
			}
			records := s.epp.value("weir_extproc_usage_records_total", "outcome", "used")
			in := s.epp.value("weir_extproc_usage_tokens_total", "kind", "input")
			out := s.epp.value("weir_extproc_usage_tokens_total", "kind", "output")
			charged := s.epp.value("weir_flow_actual_cost_total")
			for _, c := range []struct{ path, body string }{
				{"/v1/chat/completions", `"messages":[{"role":"user","content":"12345678"}],"max_tokens":7`},
				{"/v1/completions", `"prompt":"12345678","max_tokens":9`},
				{"/v1/messages", `"messages":[{"role":"user","content":"12345678"}],"max_tokens":11`},
				{"/v1/responses", `"input":"12345678","max_output_tokens":13`},
			} {
				for _, how := range []string{`"stream":false`, askingForUsage} {
					for _, client := range protocols {
						got := s.send(ask{path: c.path, body: `{"model":"tiny",` + c.body + "," + how + "}", client: client})
						wantServed(t, c.path, got)
						records++
						hasIn, hasOut := lastNumber(t, inputIn, got.body), lastNumber(t, outputIn, got.body)
						in, out = in+hasIn, out+hasOut
						s.epp.waitFor(records, "weir_extproc_usage_records_total", "outcome", "used")
						s.epp.waitFor(0, "weir_extproc_usage_awaited")
						charged += hasIn + 2*hasOut
						s.epp.waitFor(charged, "weir_flow_actual_cost_total")
						if gotIn, gotOut := s.epp.value("weir_extproc_usage_tokens_total", "kind", "input"),
							s.epp.value("weir_extproc_usage_tokens_total", "kind", "output"); gotIn != in || gotOut != out {
							t.Fatalf("%s %s: %v tokens in and %v out, want %v and %v", c.path, how, gotIn, gotOut, in, out)
						}
					}
				}
			}
			if n := s.epp.value("weir_extproc_usage_unknown_total"); way == "als" && n != 0 {
				t.Errorf("%v requests without usage", n)
			}
			s.epp.settled()
		})
	}
}

// A record that comes late, as from a log with a large buffer, finds the stock settled, and is taken once.
func TestLateRecord(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		envoys: []string{"als"}, models: []modelsim.Config{modelsim.Fixed(4, 5*time.Millisecond)}, config: byLog,
		edit: toLog(func(_ envoyrun.Bootstrap, log map[string]any) { log["buffer_flush_interval"] = "3s" }),
	})
	wantServed(t, "one", s.send(ask{})) // which starts the log's timer
	s.epp.waitFor(1, "weir_extproc_usage_records_total", "outcome", "used")
	before := s.epp.value("weir_extproc_usage_tokens_total", "kind", "output")
	begun := time.Now()
	for range 8 {
		wantServed(t, "one", s.send(ask{}))
	}
	s.epp.settled()
	if waiting := s.epp.value("weir_extproc_usage_awaited"); waiting != 8 && time.Since(begun) < 2*time.Second {
		t.Errorf("%v await their records, want 8", waiting)
	}
	s.epp.waitFor(0, "weir_extproc_usage_awaited")
	if got := s.epp.value("weir_extproc_usage_tokens_total", "kind", "output") - before; got != 8*4 {
		t.Errorf("%v tokens, want %v", got, 8*4)
	}
	if n := s.epp.value("weir_extproc_usage_unknown_total"); n != 0 {
		t.Errorf("%v without usage", n)
	}
}

// The record of an exchange that broke off says who did it; the request is charged as without usage, at once.
func TestEndsInTheLog(t *testing.T) {
	t.Parallel()
	streamed := `{"model":"tiny","messages":[],"max_tokens":100000,` + askingForUsage + `}`
	for _, c := range []struct {
		name, end string
		quirk     modelsim.Quirk
		client    string
		leave     bool
		unknown   float64 // requests without usage
	}{
		{name: "the client leaves", end: "client", client: "HTTP/1.1", leave: true, unknown: 1},
		{name: "the client resets", end: "client", client: "HTTP/2", leave: true, unknown: 1},
		{name: "the server breaks off", end: "server", client: "HTTP/1.1", quirk: modelsim.Quirk{Reset: modelsim.ResetMidAnswer}, unknown: 1},
		{name: "the server breaks off before", end: "server", client: "HTTP/1.1", quirk: modelsim.Quirk{Reset: modelsim.ResetBeforeHeaders}, unknown: 1},
		{name: "the server refuses", end: "whole", client: "HTTP/1.1", quirk: modelsim.Quirk{Status: 400}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{envoys: []string{"als"}, models: []modelsim.Config{modelsim.Fixed(4, time.Hour)}, config: byLog})
			s.models[0].Inject(1, c.quirk)
			a := ask{client: protocols[c.client], body: streamed}
			p := s.begin(a)
			if c.leave {
				s.epp.waitFor(1, "weir_stock_level")
				s.running(1)
				p.cancel()
			}
			p.wait()
			s.epp.waitFor(1, "weir_extproc_exchange_ends_total", "end", c.end)
			s.epp.waitFor(0, "weir_extproc_usage_awaited")
			s.epp.settled()
			if n := s.epp.value("weir_extproc_usage_unknown_total"); n != c.unknown {
				t.Errorf("%v without usage, want %v", n, c.unknown)
			}
		})
	}
}

// A record that goes to another replica is counted there, and changes nothing; the request is charged without it, and
// nothing is held. The same goes for a log that is not there.
func TestRecordElsewhere(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		t.Run(fmt.Sprintf("log %v", there), func(t *testing.T) {
			with := setup{models: []modelsim.Config{modelsim.Fixed(4, 5*time.Millisecond)}, config: byLog}
			var other *epp
			if there {
				other = startEPP(t, with, []string{"127.0.0.1:1"})
				with.envoys = []string{"als"}
				with.edit = toLog(func(b envoyrun.Bootstrap, log map[string]any) {
					log["grpc_service"] = map[string]any{"envoy_grpc": map[string]any{"cluster_name": "other"}}
					addReplica(t, b, "other", other.address)
				})
			}
			s := start(t, with)
			wantServed(t, "one", s.send(ask{}))
			s.epp.settled()
			if n := s.epp.value("weir_extproc_usage_awaited"); n != 1 {
				t.Errorf("%v await their records", n)
			}
			if there {
				other.waitFor(1, "weir_extproc_usage_records_total", "outcome", "unknown")
				if n := other.value("weir_extproc_usage_tokens_total"); n != 0 {
					t.Errorf("%v tokens at the other replica", n)
				}
			}
			s.epp.waitFor(0, "weir_extproc_usage_awaited")
			s.epp.waitFor(1, "weir_extproc_usage_unknown_total")
		})
	}
}

// With usage: auto, nobody waits for records where there is no log.
func TestAutoWithoutALog(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(4, 5*time.Millisecond)}, config: inTokens, edit: envoyrun.WithoutUsage,
	})
	for i := range 3 {
		wantServed(t, "one", s.send(ask{}))
		s.epp.waitFor(float64(i+1), "weir_extproc_usage_unknown_total")
		if n := s.epp.value("weir_extproc_usage_awaited"); n != 0 {
			t.Errorf("%v await records", n)
		}
	}
}

// Envoy never ends the stream of its access log; Weir ends all the same when it is told to.
func TestDrainWithALog(t *testing.T) {
	t.Parallel()
	s := start(t, setup{envoys: []string{"als"}, config: byLog})
	wantServed(t, "one", s.send(ask{}))
	s.epp.waitFor(1, "weir_extproc_usage_records_total", "outcome", "used")
	s.epp.signal(syscall.SIGTERM)
	if code := s.epp.exitCode(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
