package envoyfacts

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/doctor"
	"github.com/weir-epp/weir/internal/envoyrun"
)

// The harm of the traps that `weir doctor` finds (docs/doctor.md), unless another test shows it.

// wantTraps checks that `weir doctor` finds exactly these traps in the running Envoy's config dump, beside a Weir with
// config/weir.yaml.
func (e *proxy) wantTraps(t *testing.T, servers []string, ids ...string) {
	t.Helper()
	e.wantTrapsOf(t, doctor.Weir{Endpoints: servers}, ids...)
}

// wantTrapsOf is wantTraps for a Weir with more known facts.
func (e *proxy) wantTrapsOf(t *testing.T, weir doctor.Weir, ids ...string) {
	t.Helper()
	text, err := os.ReadFile("../../config/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, err := config.Load(config.Source{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(e.AdminURL() + "/config_dump?include_eds")
	if err != nil {
		t.Fatal(err)
	}
	dump, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	envoys, err := doctor.Read(dump)
	if err != nil || len(envoys) != 1 {
		t.Fatalf("%d Envoys, %v", len(envoys), err)
	}
	weir.Document, weir.TLS = document, new(false)
	report := doctor.Examine(envoys[0], weir)
	var got []string
	for _, f := range report.Findings {
		if !slices.Contains(got, f.ID) {
			got = append(got, f.ID)
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("weir doctor finds %v, want %v: %+v", got, ids, report)
	}
	for _, n := range report.Notes {
		if strings.Contains(n, "unknown type") || strings.Contains(n, "cannot be read") || strings.Contains(n, "not there") {
			t.Error(n)
		}
	}
}

// "stream_idle_timeout of the HTTP connection manager counts the time in the queue: 504."
func TestIdleTimeoutEndsAHold(t *testing.T) {
	p, server := newProcessor(t), unused(t)
	envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
		b.ConnectionManager()["stream_idle_timeout"] = "0.5s"
		return nil
	}, server)
	envoy.wantTraps(t, []string{server}, "stream-idle-timeout")
	x := envoy.post(t, `{}`)
	s := p.accept(t)
	s.want("request_headers") // held
	x.wantError(http.StatusGatewayTimeout, "timeout")
	s.wantEnded()
}

// "Lists need a retry policy on the route to be walked."
func TestListWithoutRetries(t *testing.T) {
	address, dead := modelServer(t, answering("served")), unused(t)
	for name, want := range map[string]int{"with": http.StatusOK, "without": http.StatusServiceUnavailable} {
		t.Run(name, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
				if name == "without" {
					delete(b.Route(), "retry_policy")
				}
				return nil
			}, address, dead)
			if name == "without" {
				envoy.wantTraps(t, []string{address, dead}, "retry-policy")
			} else {
				envoy.wantTraps(t, []string{address, dead})
			}
			x := envoy.post(t, "")
			s := p.accept(t)
			s.want("request_headers")
			s.send(requestHeaders(destinationHeader, dead+","+address))
			s.want("response_headers")
			s.send(responseHeaders())
			if resp := x.headers(); resp.StatusCode != want {
				t.Errorf("status is %d, want %d", resp.StatusCode, want)
			}
		})
	}
}

// "ORIGINAL_DST with use_http_header: one address only (a list gives 503); any address at all." "A client-forged header with
// ORIGINAL_DST, failure_mode_allow: true and a dead processor reaches any address: it read Envoy's own admin page."
func TestOriginalDestination(t *testing.T) {
	address := modelServer(t, answering("served"))
	original := func(b envoyrun.Bootstrap) error {
		c := b.Cluster(envoyrun.ModelServersCluster)
		delete(c, "eds_cluster_config")
		delete(c, "load_balancing_policy")
		c["type"], c["lb_policy"] = "ORIGINAL_DST", "CLUSTER_PROVIDED"
		c["original_dst_lb_config"] = map[string]any{"use_http_header": true, "http_header_name": destinationHeader}
		return nil
	}
	for _, test := range []struct {
		name, config string
		edit         func(envoyrun.Bootstrap) error
		status       int // of a client's own destination, while the processor is dead
		traps        []string
	}{
		{
			"open", "recommended", envoyrun.KeepHeader(destinationHeader), http.StatusOK,
			[]string{"client-destination", "original-dst-fail-open", "original-dst-fallbacks"},
		},
		{"open, removed", "recommended", nil, http.StatusServiceUnavailable, []string{"original-dst-fail-open", "original-dst-fallbacks"}},
		{"closed", "fail-closed", envoyrun.KeepHeader(destinationHeader), http.StatusServiceUnavailable, []string{"original-dst-fallbacks"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, test.config, p, envoyrun.Edits(original, test.edit), address)
			envoy.wantTraps(t, []string{address}, test.traps...)
			for list, want := range map[string]int{address: http.StatusOK, address + "," + address: http.StatusServiceUnavailable} {
				x := envoy.post(t, "")
				s := p.accept(t)
				s.want("request_headers")
				s.send(requestHeaders(destinationHeader, list))
				s.want("response_headers")
				s.send(responseHeaders())
				if resp := x.headers(); resp.StatusCode != want {
					t.Errorf("%s: status is %d, want %d", list, resp.StatusCode, want)
				}
			}
			p.die()
			admin := strings.TrimPrefix(envoy.AdminURL(), "http://")
			request, err := http.NewRequest(http.MethodGet, envoy.URL()+"/server_info", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set(destinationHeader, admin)
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != test.status || strings.Contains(string(body), "command_line_options") != (test.status == http.StatusOK) {
				t.Errorf("a client that names the admin interface got %d %s", resp.StatusCode, shorten(body))
			}
		})
	}
}

// "Dynamic metadata envoy.lb from the processor counts only with metadata_options.receiving_namespaces.untyped: [envoy.lb]."
func TestMetadataThatIsNotReceived(t *testing.T) {
	a, b := modelServer(t, answering("a")), modelServer(t, answering("b"))
	const tries = 24
	for name, honoured := range map[string]bool{"received": true, "not received": false} {
		t.Run(name, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, "recommended", p, func(c envoyrun.Bootstrap) error {
				policy := envoyrun.Object(c.Cluster(envoyrun.ModelServersCluster), "load_balancing_policy", "policies", 0,
					"typed_extension_config", "typed_config")
				policy["override_host_sources"] = envoyrun.List(policy, "override_host_sources")[1:] // metadata only
				if !honoured {
					envoyrun.Object(c.Filter(envoyrun.ExtProcFilter), "metadata_options")["receiving_namespaces"] = map[string]any{"untyped": []any{"weir"}}
				}
				return nil
			}, a, b)
			if !honoured {
				envoy.wantTraps(t, []string{a, b}, "metadata-not-received")
			}
			chosen := 0
			for range tries {
				x := envoy.post(t, "")
				s := p.accept(t)
				s.want("request_headers")
				s.send(withMetadata(requestHeaders(), "envoy.lb", destinationHeader, b))
				s.want("response_headers")
				s.send(responseHeaders())
				if body, err := io.ReadAll(x.headers().Body); err != nil {
					t.Fatal(err)
				} else if string(body) == "b" {
					chosen++
				}
			}
			// Two servers take turns otherwise, so all 24 at one of them happen by chance once in millions.
			if (chosen == tries) != honoured {
				t.Errorf("%d of %d went where the metadata says", chosen, tries)
			}
		})
	}
}

// The processor gets the metadata of forwarded namespaces only: without envoy.lb it does not learn the serving
// endpoint.
func TestMetadataThatIsNotForwarded(t *testing.T) {
	address := modelServer(t, answering("a"))
	for name, want := range map[string]string{"forwarded": address, "not forwarded": ""} {
		t.Run(name, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
				if want == "" {
					envoyrun.Object(b.Filter(envoyrun.ExtProcFilter), "metadata_options", "forwarding_namespaces")["untyped"] = []any{}
				}
				return nil
			}, address)
			if want == "" {
				envoy.wantTraps(t, []string{address}, "metadata-not-forwarded")
			}
			x := envoy.post(t, "")
			s := p.accept(t)
			s.want("request_headers")
			s.send(requestHeaders(destinationHeader, address))
			if got := served(s.want("response_headers")); got != want {
				t.Errorf("served by %q, want %q", got, want)
			}
			s.send(responseHeaders())
			x.want(http.StatusOK, "a")
		})
	}
}

// "Gate timed out: the headers flow on": with Envoy's own timeout of 200 ms long before the first token.
func TestGateTimesOut(t *testing.T) {
	p := newProcessor(t)
	address, pieces, _ := sse(t)
	envoy := start(t, "gate", p, func(b envoyrun.Bootstrap) error {
		delete(b.Filter(envoyrun.GateFilter), "message_timeout")
		return nil
	}, address)
	envoy.wantTraps(t, []string{address}, "gate-timeout")
	x, main, gate := gated(t, p, envoy, address)
	main.want("response_headers") // although no token came
	main.send(responseHeaders())
	x.headers()
	gate.wantEnded()
	close(pieces)
}

// "Envoy 1.40 crashes with an upstream ext_proc filter in STREAMED response mode when a body passes the cluster's buffer limit (1
// MiB by default)": the limit of the processor's cluster decides. With 256 MiB it does not crash.
func TestUpstreamFilterWithASmallBuffer(t *testing.T) {
	const size = 8 << 20
	address := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, size))
	})
	for name, limit := range map[string]int{"small": 0, "large": 256 << 20} {
		t.Run(name, func(t *testing.T) {
			p := newProcessor(t)
			envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{
				Config: "direct", Weir: p.address, ModelServers: []string{address},
				Edit: func(b envoyrun.Bootstrap) error { return streamUpstream(b, p, limit) },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(envoy.Kill)
			if limit == 0 {
				(&proxy{envoy}).wantTraps(t, []string{address}, "upstream-buffer")
			} else {
				(&proxy{envoy}).wantTraps(t, []string{address})
			}
			go func() {
				for {
					select {
					case s := <-p.streams:
						go s.passAnswer()
					case <-t.Context().Done():
						return
					}
				}
			}()
			whole := false
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
			for range 8 {
				resp, err := client.Post(envoy.URL()+"/v1/completions", "application/json", strings.NewReader(`{}`))
				if err != nil {
					whole = false
					break
				}
				n, err := io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if whole = err == nil && n == size; !whole {
					break
				}
			}
			if limit > 0 != whole {
				t.Errorf("the answers came whole: %t", whole)
			}
			if limit == 0 {
				select {
				case <-envoy.Done():
				case <-time.After(patience):
					t.Error("Envoy did not crash: perhaps it is mended in this version")
				}
			}
		})
	}
}

// The place of the usage filter decides whether the usage arrives. As a filter of the cluster, it arrives with the end
// of the answer. As a filter of the listener, before or after ext_proc, it does not if the answer comes in one piece
// while the answer to its headers is outstanding.
func TestUsageOnTheWrongSide(t *testing.T) {
	const answer = `{"object":"chat.completion","choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`
	whole := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("content-type", "application/json")
		w.Header().Set("content-length", strconv.Itoa(len(answer)))
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(whole.Close)
	address := whole.Listener.Addr().String()
	for place, told := range map[string]bool{"cluster": true, "before": false, "after": false} {
		t.Run(place, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
				if place == "cluster" {
					return nil
				}
				options := envoyrun.Object(b.Cluster(envoyrun.ModelServersCluster), "typed_extension_protocol_options",
					"envoy.extensions.upstreams.http.v3.HttpProtocolOptions")
				filter := envoyrun.List(options, "http_filters")[0]
				delete(options, "http_filters")
				manager := b.ConnectionManager()
				var filters []any
				for _, f := range envoyrun.List(manager, "http_filters") {
					if envoyrun.Object(f)["name"] == envoyrun.ExtProcFilter {
						if place == "before" {
							f = []any{filter, f}
						} else {
							f = []any{f, filter}
						}
						filters = append(filters, f.([]any)...)
						continue
					}
					filters = append(filters, f)
				}
				manager["http_filters"] = filters
				return nil
			}, address)
			if !told {
				envoy.wantTraps(t, []string{address}, "usage-side")
			}
			x := envoy.postTo(t, "/v1/chat/completions", `{}`)
			s := p.accept(t)
			s.want("request_headers")
			s.send(withoutBody(requestHeaders(destinationHeader, address)))
			s.want("response_headers")
			envoy.waitForStat(t, "cluster.model_servers.upstream_rq_completed", 1)
			s.send(responseHeaders())
			if told {
				usage := s.want("response_trailers").GetMetadataContext().GetTypedFilterMetadata()["envoy.ai.token_usage"]
				if usage == nil {
					t.Error("the trailers have no usage")
				}
				s.send(responseTrailers())
			}
			x.want(http.StatusOK, answer)
			s.wantNoMore()
		})
	}
}

// An Envoy that speaks TLS to a processor without TLS opens no stream: in fail-open requests bypass it.
func TestTLSToAPlaintextProcessor(t *testing.T) {
	p, server := newProcessor(t), modelServer(t, answering("past"))
	envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
		b.Cluster(envoyrun.WeirCluster)["transport_socket"] = map[string]any{
			"name": "envoy.transport_sockets.tls", "typed_config": map[string]any{
				"@type":              "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"common_tls_context": map[string]any{"alpn_protocols": []any{"h2"}},
			},
		}
		return nil
	}, server)
	envoy.wantTraps(t, []string{server}, "tls-to-weir")
	envoy.post(t, "").want(http.StatusOK, "past")
	if n := len(p.streams); n != 0 {
		t.Errorf("%d streams", n)
	}
}

// An Envoy whose cluster has another port than the processor opens no stream: in fail-open requests bypass it.
func TestNothingAtTheProcessorsPort(t *testing.T) {
	p, server := newProcessor(t), modelServer(t, answering("past"))
	_, listens, _ := strings.Cut(p.address, ":")
	p.address = unused(t)
	envoy := start(t, "recommended", p, nil, server)
	port, err := strconv.Atoi(listens)
	if err != nil {
		t.Fatal(err)
	}
	envoy.wantTrapsOf(t, doctor.Weir{Endpoints: []string{server}, Port: port}, "port-to-weir")
	envoy.post(t, "").want(http.StatusOK, "past")
	if n := len(p.streams); n != 0 {
		t.Errorf("%d streams", n)
	}
}

// A buffer filter with a smaller limit than the processor's answers 413 itself, and the processor sees only that
// answer.
func TestBodyOverTheBufferFilter(t *testing.T) {
	p, server := newProcessor(t), unused(t)
	envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
		b.Filter(envoyrun.BufferFilter)["max_request_bytes"] = 1 << 10
		return nil
	}, server)
	envoy.wantTraps(t, []string{server}, "buffer-limit")
	x := envoy.post(t, strings.Repeat("x", 2<<10))
	s := p.accept(t)
	if status := header(s.want("response_headers").GetResponseHeaders(), ":status"); status != "413" {
		t.Errorf(":status is %q", status)
	}
	s.send(responseHeaders())
	x.wantError(http.StatusRequestEntityTooLarge, "too-large")
	s.wantEnded()
}

// streamUpstream sends every answer of the model servers through an ext_proc filter of their cluster, in STREAMED mode.
func streamUpstream(b envoyrun.Bootstrap, p *processor, limit int) error {
	shipped, err := envoyrun.Load("recommended")
	if err != nil {
		return err
	}
	weir := shipped.Cluster(envoyrun.WeirCluster)
	host, port, _ := strings.Cut(p.address, ":")
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	envoyrun.Object(weir, "load_assignment", "endpoints", 0, "lb_endpoints", 0, "endpoint", "address")["socket_address"] = map[string]any{
		"address": host, "port_value": number,
	}
	resources := envoyrun.Object(b, "static_resources")
	resources["clusters"] = append(envoyrun.List(resources, "clusters"), weir)
	if limit > 0 {
		weir["per_connection_buffer_limit_bytes"] = limit
	}
	options := envoyrun.Object(b.Cluster(envoyrun.ModelServersCluster), "typed_extension_protocol_options", "envoy.extensions.upstreams.http.v3.HttpProtocolOptions")
	options["http_filters"] = []any{
		map[string]any{"name": envoyrun.ExtProcFilter, "typed_config": map[string]any{
			"@type":           "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
			"grpc_service":    map[string]any{"envoy_grpc": map[string]any{"cluster_name": envoyrun.WeirCluster}, "timeout": "0s"},
			"message_timeout": "60s",
			"processing_mode": map[string]any{
				"request_header_mode": "SKIP", "response_header_mode": "SEND", "response_body_mode": "STREAMED",
			},
		}},
		map[string]any{"name": "envoy.filters.http.upstream_codec", "typed_config": map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
		}},
	}
	return nil
}

// passAnswer answers all messages about an answer as they come.
func (s *stream) passAnswer() {
	for message := range s.messages {
		answer := responseBody()
		if kind(message) == "response_headers" {
			answer = responseHeaders()
		}
		if s.grpc.Send(answer) != nil {
			return
		}
	}
}
