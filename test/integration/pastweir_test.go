package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// extProc returns a counter of the first Envoy's main ext_proc filter in Prometheus' form, from the stats listener.
func (s *scene) extProc(counter string) float64 {
	s.t.Helper()
	families, err := expect.Scrape(s.envoy().StatsURL() + "/metrics")
	if err != nil || families["envoy_http_ext_proc_"+counter] == nil {
		s.t.Fatalf("%v, and no counter %s among %d", err, counter, len(families))
	}
	return families.Sum("envoy_http_ext_proc_" + counter)
}

// counted waits until a counter of ext_proc has the value.
func (s *scene) counted(counter string, want float64) {
	s.t.Helper()
	expect.Eventually(s.t, counter, func() error {
		if got := s.extProc(counter); got != want {
			return fmt.Errorf("%s is %v, want %v", counter, got, want)
		}
		return nil
	})
}

// The stats listener of every shipped file counts a request that bypasses Weir, for any reason. It does not count one
// that goes through Weir, is rejected by it or ends early.
func TestRequestsPastWeirAreCounted(t *testing.T) {
	t.Parallel()
	get := ask{method: "GET", path: "/v1/models"} // bypasses Weir in FULL_DUPLEX_STREAMED, too
	through := func(s *scene) {
		s.t.Helper()
		wantServed(s.t, "through Weir", s.send(ask{}))
		wantServed(s.t, "through Weir", s.send(get))
		s.epp.settled()
		s.counted("failure_mode_allowed", 0)
		if page := s.epp.status(); !regexp.MustCompile(`(?m)^streams +0 +the last one came \d+s ago\nhandshakes +none: without TLS$`).MatchString(page) {
			s.t.Errorf("/statusz does not say when the last stream came:\n%s", page)
		}
	}
	for _, config := range slices.DeleteFunc(envoyrun.Shipped(), func(name string) bool { return name == "direct" }) {
		t.Run("killed, "+config, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{envoys: []string{config}, models: []modelsim.Config{modelsim.Fixed(4, time.Millisecond)}})
			through(s)
			s.epp.kill()
			status, past := 200, 2.0
			if config == "fail-closed" {
				status, past = 503, 0
			}
			for range 2 {
				if got := s.send(get); got.status != status {
					t.Errorf("without Weir: got %d %v, want %d", got.status, got.err, status)
				}
			}
			s.counted("failure_mode_allowed", past)
			if past == 0 && s.extProc("streams_failed") == 0 {
				t.Error("no stream has failed")
			}
			if config == "gate" { // a bypass of its own does not count
				s.counted("gate_failure_mode_allowed", 2)
			}
		})
	}
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		s := start(t, setup{models: []modelsim.Config{modelsim.Fixed(4, time.Millisecond)}, flags: []string{"--secure-serving=true"}})
		wantServed(t, "past Weir", s.send(ask{}))
		s.counted("failure_mode_allowed", 1)
		expect.True(t, "Weir has counted the handshake", func() bool { return s.epp.value("weir_tls_handshake_failures_total", "reason", "plaintext") > 0 })
		for _, want := range []string{`streams +0 +none has come yet`, `handshakes +[1-9]\d* failed +plaintext [1-9]\d*; the last one \d+s ago`} {
			if page := s.epp.status(); !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(page) {
				t.Errorf("/statusz has no line %q:\n%s", want, page)
			}
		}
	})
	t.Run("no answer in time", func(t *testing.T) {
		t.Parallel()
		s := start(t, setup{models: []modelsim.Config{modelsim.Fixed(4, time.Millisecond)}, edit: func(b envoyrun.Bootstrap) error {
			b.Filter(envoyrun.ExtProcFilter)["message_timeout"] = "5s"
			return nil
		}})
		through(s)
		s.epp.signal(syscall.SIGSTOP)
		defer s.epp.signal(syscall.SIGCONT)
		wantServed(t, "past Weir", s.send(ask{}))
		s.counted("failure_mode_allowed", 1)
		s.counted("message_timeouts", 1)
	})
	t.Run("rejected, and gone while it waited", func(t *testing.T) {
		t.Parallel()
		v := newValve()
		s := start(t, setup{models: v.one(), config: single + "fairRequestQueue: { totalCapacity: 1, flowCapacity: 1 }\n"})
		s.begin(ask{})
		s.epp.waitFor(1, "weir_stock_level")
		left := s.begin(ask{})
		s.epp.waitFor(1, "weir_queue_length")
		wantRejection(t, s.send(ask{}), rejection{status: 503, reason: "flow-full"})
		left.cancel()
		s.epp.waitFor(0, "weir_queue_length")
		v.open()
		s.epp.settled()
		s.counted("failure_mode_allowed", 0)
	})
	t.Run("an orderly end", func(t *testing.T) {
		t.Parallel()
		v := newValve()
		s := start(t, setup{models: v.one(), flags: []string{"--drain-timeout=1s"}})
		running := s.begin(ask{})
		s.running(1)
		s.epp.signal(syscall.SIGTERM)
		s.epp.exitCode(patience)
		s.counted("failure_mode_allowed", 0)
		v.open()
		wantServed(t, "running", running.wait())
		s.counted("failure_mode_allowed", 0)
	})
}

// Envoy has a wrong port of Weir's: requests bypass Weir, and both commands of an operator say so.
func TestPassedByIsNoticed(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(4, time.Hour)},
		edit: func(b envoyrun.Bootstrap) error {
			text, err := json.Marshal(b.Cluster(envoyrun.WeirCluster)["load_assignment"])
			if err != nil {
				return err
			}
			var elsewhere any
			err = json.Unmarshal(regexp.MustCompile(`"port_value":\d+`).ReplaceAll(text, []byte(`"port_value":1`)), &elsewhere)
			b.Cluster(envoyrun.WeirCluster)["load_assignment"] = elsewhere
			return err
		},
	})
	debug := strings.TrimPrefix(s.epp.DebugURL, "http://")
	if out, err := runWeir(t, "status", "--address="+debug); err != nil || !strings.HasPrefix(out, "healthy\n") {
		t.Errorf("before the request: %v\n%s", err, out)
	}
	s.begin(ask{})
	expect.Eventually(t, "weir status sees that Weir is passed by", func() error {
		out, err := runWeir(t, "status", "--address="+debug)
		if err == nil || err.Error() != "exit status 1" || !strings.Contains(out, "passed-by: 1 of 1 engines have requests") {
			return fmt.Errorf("not yet: %w\n%s", err, out)
		}
		return nil
	})
	_, port, _ := strings.Cut(s.epp.Address, ":")
	out, err := runWeir(t, "doctor", "--profile=wfq", "--grpc-port="+port, s.envoy().AdminURL())
	if err == nil || !strings.Contains(out, "port-to-weir: ") || !strings.Contains(out, "port_value: "+port) {
		t.Errorf("weir doctor: %v\n%s", err, out)
	}
}

var extProcLine = regexp.MustCompile(`^(# TYPE envoy_http_ext_proc_\w+ counter|envoy_http_ext_proc_\w+\{envoy_http_conn_manager_prefix="inference"\} \d+)?$`)

// For any request, the stats listener serves only the counters of ext_proc at one path, and nothing else of the admin
// interface.
func TestStatsListenerServesCountersOnly(t *testing.T) {
	t.Parallel()
	for _, config := range slices.DeleteFunc(envoyrun.Shipped(), func(name string) bool { return name == "direct" }) {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{envoys: []string{config}})
			address := strings.TrimPrefix(s.envoy().StatsURL(), "http://")
			status, body := raw(t, address, "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
			lines := strings.Split(body, "\n")
			if status != 200 || len(lines) < 10 {
				t.Errorf("/metrics: got %d with %d lines", status, len(lines))
			}
			for _, line := range lines {
				if !extProcLine.MatchString(line) {
					t.Errorf("/metrics shows %q", line)
				}
			}
			admin := strings.TrimPrefix(s.envoy().AdminURL(), "http://")
			for _, line := range []string{
				"GET /", "GET /stats", "GET /stats/prometheus", "GET /config_dump", "GET /server_info", "GET /clusters", "GET /certs",
				"GET /metrics?", "GET /metrics?filter=.*", "GET /metrics?&filter=.*", "GET /metrics?|.*", "GET /metrics%3ffilter=.*",
				"GET /metrics&filter=.*", "GET /metrics;a=b", "GET /metrics/", "GET //metrics", "GET /metrics/../config_dump",
				"GET /metrics/%2e%2e/config_dump", "GET /%6detrics", "GET /METRICS", "GET /metrics%00", "GET /metrics\\..\\certs",
				"GET http://" + admin + "/config_dump", "GET http://" + admin + "/metrics?filter=.*", "GET metrics", "GET *", "OPTIONS *",
				"POST /metrics", "POST /quitquitquit", "POST /logging?level=trace", "POST /healthcheck/fail", "POST /drain_listeners",
				"POST /reset_counters", "HEAD /metrics", "PUT /metrics", "DELETE /metrics", "TRACE /metrics", "get /metrics",
				"CONNECT " + admin,
			} {
				status, body := raw(t, address, line+" HTTP/1.1\r\nhost: "+admin+"\r\ncontent-length: 0\r\n\r\n")
				if status < 400 || status > 499 || strings.Contains(body, "envoy") {
					t.Errorf("%q: got %d %.200q", line, status, body)
				}
			}
			// A client's headers change nothing either.
			status, again := raw(t, address, "GET /metrics HTTP/1.1\r\nhost: "+admin+"\r\nx-envoy-original-path: /config_dump\r\n"+
				"x-forwarded-for: 127.0.0.1\r\nx-http-method-override: POST\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
			if status == 200 && !strings.HasPrefix(again, "# TYPE envoy_http_ext_proc_") || status != 200 && status != 403 {
				t.Errorf("with headers: got %d %.200q", status, again)
			}
			// Two requests in the bytes of one.
			_, body = raw(t, address, "GET /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"+
				"0\r\n\r\nGET /config_dump HTTP/1.1\r\nhost: x\r\n\r\n")
			if strings.Contains(body, "bootstrap") {
				t.Errorf("a smuggled request shows %.200q", body)
			}
			if _, err := s.envoy().Stats(context.Background(), "^server.live$"); err != nil {
				t.Error(err)
			}
		})
	}
}

// status returns the page /statusz.
func (e *epp) status() string {
	e.t.Helper()
	return expect.Page(e.t, e.DebugURL+"/statusz")
}

// raw sends bytes and returns the first response, with all bytes after its headers.
func raw(t *testing.T, address, request string) (status int, body string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Errorf("%.60q: %v", request, err)
		return 0, ""
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%.60q: %v", request, err)
	}
	return response.StatusCode, string(text)
}
