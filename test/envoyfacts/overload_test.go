package envoyfacts

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
)

// The facts about Envoy's own signals of overload behind ADR 0192.

const overloadedHeader = "x-envoy-overloaded"

// waitForStat waits until a statistic has a value.
func (e *proxy) waitForStat(t *testing.T, name string, want int64) {
	t.Helper()
	expect.Eventually(t, name, func() error {
		stats, err := e.Stats(context.Background(), "^"+name+"$")
		if got := stats[name]; err == nil && got != want {
			err = fmt.Errorf("is %d, want %d", got, want)
		}
		return err
	})
}

// checked adds a health check of Weir's cluster, at its own address, and the least part of healthy hosts in percent;
// below 0: Envoy's default.
func checked(address string, panicThreshold int) func(envoyrun.Bootstrap) error {
	return func(b envoyrun.Bootstrap) error {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			return err
		}
		weir := b.Cluster(envoyrun.WeirCluster)
		envoyrun.Object(weir, "load_assignment", "endpoints", 0, "lb_endpoints", 0, "endpoint")["health_check_config"] = map[string]any{"port_value": number}
		weir["health_checks"] = []any{map[string]any{
			"timeout": "5s", "interval": "0.1s", "no_traffic_interval": "0.1s", "unhealthy_threshold": 1, "healthy_threshold": 1,
			"http_health_check": map[string]any{"path": "/", "codec_client_type": "HTTP1"},
		}}
		if panicThreshold >= 0 {
			weir["common_lb_config"] = map[string]any{"healthy_panic_threshold": map[string]any{"value": panicThreshold}}
		}
		return nil
	}
}

// passes sends a request, and returns its status if Envoy opens no stream for it. Otherwise it returns 0 after the
// answer.
func (e *proxy) passes(t *testing.T, p *processor, pairs ...string) int {
	t.Helper()
	x := e.post(t, "", pairs...)
	select {
	case s := <-p.streams:
		s.t = t
		s.want("request_headers")
		s.send(requestHeaders())
		s.want("response_headers")
		s.send(responseHeaders())
		x.want(http.StatusOK, "a")
		return 0
	case resp := <-x.answer:
		if resp == nil {
			t.Fatal(x.err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
}

// "A health check on Weir's cluster: while it fails, no stream is opened, so a request passes Weir in fail-open and has 503 in
// fail-closed; with the default panic threshold the check changes nothing, since no other host is healthy." It holds back
// nobody.
func TestEnvoyAndTheProcessorsHealth(t *testing.T) {
	for _, test := range []struct {
		config    string
		threshold int
		status    int // of a request while the check fails; 0: it has a stream
	}{{"recommended", 0, http.StatusOK}, {"fail-closed", 0, http.StatusServiceUnavailable}, {"recommended", -1, 0}} {
		t.Run(fmt.Sprint(test.config, " ", test.threshold), func(t *testing.T) {
			var sick atomic.Bool
			health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if sick.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			t.Cleanup(health.Close)
			p, server := newProcessor(t), modelServer(t, answering("a"))
			envoy := start(t, test.config, p, checked(health.Listener.Addr().String(), test.threshold), server)
			if test.threshold < 0 {
				envoy.wantTraps(t, []string{server}, "panic-threshold")
			} else {
				envoy.wantTraps(t, []string{server})
			}
			become := func(status int) {
				t.Helper()
				got := -1
				for limit := time.Now().Add(patience); got != status && time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
					got = envoy.passes(t, p) // worker threads get it a little later than the statistics
				}
				if got != status {
					t.Fatalf("status %d, want %d (0: a stream)", got, status)
				}
			}
			become(0)
			sick.Store(true)
			envoy.waitForStat(t, "cluster.weir.membership_healthy", 0)
			become(test.status)
			for range 5 {
				if got := envoy.passes(t, p); got != test.status {
					t.Errorf("status %d, want %d (0: a stream)", got, test.status)
				}
			}
			sick.Store(false)
			envoy.waitForStat(t, "cluster.weir.membership_healthy", 1)
			become(0)
		})
	}
}

// "x-envoy-overloaded in an answer changes nothing: Envoy tries again as its retry policy says. With x-envoy-ratelimited it does
// not." And "a rejection of ext_proc loses x-envoy- headers", so no Envoy in front of this one sees them either.
func TestOverloadedAnswersAreRetried(t *testing.T) {
	var tries atomic.Int64
	busy := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		tries.Add(1)
		if name := r.URL.Query().Get("header"); name != "" {
			w.Header().Set(name, "true")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	p := newProcessor(t)
	envoy := start(t, "direct", p, func(b envoyrun.Bootstrap) error {
		b.Route()["retry_policy"] = map[string]any{"retry_on": "5xx", "num_retries": 2}
		return nil
	}, busy)
	for query, want := range map[string]int64{"": 3, "?header=" + overloadedHeader: 3, "?header=x-envoy-ratelimited": 1} {
		tries.Store(0)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Post(
			envoy.URL()+"/v1/completions"+query, "application/json", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := tries.Load(); got != want || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%q: status %d after %d tries, want %d", query, resp.StatusCode, got, want)
		}
	}

	own := start(t, "recommended", p, nil, busy)
	x := own.post(t, "")
	s := p.accept(t)
	s.want("request_headers")
	answer := rejection("shed")
	answer.GetImmediateResponse().Headers = setHeaders(overloadedHeader, "true", "x-weir-reason", "shed")
	s.send(answer)
	resp := x.headers()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get(overloadedHeader) != "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// "Envoy's overload manager acts on what its own process or a file says: with stop_accepting_requests every request has 503,
// before any filter has seen it, and so before Weir." It knows no tenant.
func TestEnvoysOwnOverload(t *testing.T) {
	pressure := filepath.Join(t.TempDir(), "pressure")
	set := func(value string) {
		t.Helper()
		expect.Replaced(t, pressure, value)
	}
	set("0")
	const monitor, action = "envoy.resource_monitors.injected_resource", "envoy.overload_actions.stop_accepting_requests"
	p := newProcessor(t)
	envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
		b["overload_manager"] = map[string]any{
			"refresh_interval": "0.05s",
			"resource_monitors": []any{map[string]any{"name": monitor, "typed_config": map[string]any{
				"@type":    "type.googleapis.com/envoy.extensions.resource_monitors.injected_resource.v3.InjectedResourceConfig",
				"filename": pressure,
			}}},
			"actions": []any{map[string]any{"name": action, "triggers": []any{
				map[string]any{"name": monitor, "threshold": map[string]any{"value": 0.9}},
			}}},
		}
		return nil
	}, modelServer(t, answering("a")))
	set("1")
	envoy.waitForStat(t, "overload."+action+".active", 1)
	for _, tenant := range []string{"quiet", "noisy"} {
		status := -1
		for limit := time.Now().Add(patience); status != http.StatusServiceUnavailable && time.Now().Before(limit); {
			status = envoy.passes(t, p, "x-llm-d-inference-fairness-id", tenant)
		}
		if status != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d", tenant, status)
		}
	}
	set("0")
	envoy.waitForStat(t, "overload."+action+".active", 0)
	for limit := time.Now().Add(patience); envoy.passes(t, p) != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("no stream is opened")
		}
	}
}
