package gateways

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/doctor"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/pki"
)

// oneSlot is a configuration with one slot at each engine, where clients name their tiers.
const oneSlot = `
config:
  profile: recommended
  requestQueueController: { slotsPerBackend: 1 }
  criticality: { header: x-tier }
  tiers: [ { name: critical, canPreempt: true } ]
`

// duplex are values with which Weir sees whole answers, and returns them.
const duplex = "pool: { failureMode: FailClose }\ngateway: { envoyGateway: { responseBody: FullDuplexStreamed } }\n"

// headersOnly is a configuration with one slot at each engine, with which Weir reads no bodies.
const headersOnly = `
config:
  profile: wfq
  requestBody: never
  requestQueueController: { slotsPerBackend: 1 }
`

// fill sends a request to each engine, and returns them with their answers.
func (r *rig) fill(a ask) (at [2]*held, answers [2]<-chan expect.Answer) {
	r.t.Helper()
	for i := range at {
		answers[i] = r.send(a)
		at[i], _ = r.arrival()
	}
	return at, answers
}

// roundTrip serves a request without a wait. By its end Weir has seen the end of every stream that Envoy ended before.
func (r *rig) roundTrip() {
	r.t.Helper()
	answers := r.send(ask{method: http.MethodGet})
	h, _ := r.arrival()
	h.answered()
	served(r.t, "a request that does not wait", answers)
}

// A request waits until an earlier answer has ended, although Envoy Gateway's filter skips response trailers.
func TestRequestsQueue(t *testing.T) {
	for name, values := range map[string]string{"with the body": oneSlot, "by headers": headersOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{values: values})
			first, answers := r.fill(stream())
			waiting := r.send(chat())
			r.await(1, "weir_queue_length")
			for _, h := range first {
				close(h.begin)
			}
			r.await(2, "weir_extproc_response_headers_seconds")
			r.roundTrip()
			if waiting := r.value("weir_queue_length"); waiting != 1 {
				t.Fatalf("while two answers run %v requests wait", waiting)
			}
			r.await(2, "weir_stock_level")
			r.none()
			close(first[0].end)
			third, e := r.arrival()
			if got := third.header.Get("x-gateway-destination-endpoint"); got != e.address() {
				t.Errorf("the request for %s is at %s", got, e.address())
			}
			if want := chat().body; third.body != want {
				t.Errorf("the engine got the body %q, want %q", third.body, want)
			}
			close(first[1].end)
			third.answered()
			for _, a := range []<-chan expect.Answer{answers[0], answers[1], waiting} {
				served(t, "a request", a)
			}
			r.settled()
		})
	}
}

// A request without a body holds its place until its answer has ended, too.
func TestRequestWithoutABody(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{values: oneSlot})
	answers := r.send(ask{method: http.MethodGet})
	h, _ := r.arrival()
	close(h.begin)
	r.await(1, "weir_extproc_response_headers_seconds")
	// With it the endpoints are full.
	running := r.send(chat())
	second, _ := r.arrival()
	waiting := r.send(chat())
	r.await(1, "weir_queue_length")
	r.roundTrip()
	if n := r.value("weir_queue_length"); n != 1 {
		t.Fatalf("while the answer runs %v requests wait", n)
	}
	close(h.end)
	third, _ := r.arrival()
	second.answered()
	third.answered()
	served(t, "another", running)
	served(t, "the one that waited", waiting)
	served(t, "the request", answers)
	r.settled()
}

// If Weir sees whole answers, requests without a body and those with sufficient headers are served and followed to
// their ends, too.
func TestWholeAnswersWithoutABody(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{values: headersOnly + duplex})
	for _, a := range []ask{{method: http.MethodGet}, chat(), stream()} {
		answers := r.send(a)
		h, e := r.arrival()
		if got := h.header.Get("x-gateway-destination-endpoint"); got != e.address() || h.body != a.body {
			t.Errorf("%s: the request for %q is at %s, with the body %q", a.method, got, e.address(), h.body)
		}
		close(h.begin)
		r.await(1, "weir_stock_level")
		close(h.end)
		served(t, a.method, answers)
		r.settled()
	}
}

// A critical request takes the place of an unanswered sheddable one: its client gets a 503, and the engine drops it.
func TestPreemption(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{values: oneSlot})
	victims, answers := r.fill(chat("x-tier", "sheddable"))
	urgent := r.send(chat("x-tier", "critical"))
	var lost int
	select {
	case <-victims[0].gone:
	case <-victims[1].gone:
		lost = 1
	case <-time.After(patience):
		t.Fatal("no engine is rid of its request")
	}
	if got := <-answers[lost]; got.Status != http.StatusServiceUnavailable || got.Reason() != "preempted" {
		t.Errorf("the victim got status %d, reason %q, %v", got.Status, got.Reason(), got.Err)
	}
	h, _ := r.arrival()
	h.answered()
	served(t, "the critical request", urgent)
	victims[1-lost].answered()
	served(t, "the other sheddable request", answers[1-lost])
	r.settled()
	if n := r.value("weir_preempted_total", "victim_tier", "sheddable", "by_tier", "critical"); n != 1 {
		t.Errorf("%v requests were preempted", n)
	}
}

// If Weir sees the whole answer, a streamed answer may be preempted until its first token, although the engine has sent
// the headers.
func TestPreemptionBeforeTheFirstToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{values: oneSlot + duplex})
	_, answers := r.fill(stream("x-tier", "sheddable"))
	r.await(2, "weir_extproc_response_headers_seconds")
	urgent := r.send(chat("x-tier", "critical"))
	h, _ := r.arrival()
	h.answered()
	served(t, "the critical request", urgent)
	var got expect.Answer
	select {
	case got = <-answers[0]:
	case got = <-answers[1]:
	}
	if got.Status != http.StatusServiceUnavailable || got.Reason() != "preempted" {
		t.Errorf("the victim got status %d, reason %q, %v", got.Status, got.Reason(), got.Err)
	}
}

// weir doctor finds no trap in Envoy Gateway's translation of the chart: Weir's override turns response trailers on.
func TestDoctor(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	document, err := config.Load(config.Source{Text: []byte(weirYAML(t, render(t, base)))})
	if err != nil {
		t.Fatal(err)
	}
	envoys, err := doctor.Read(r.output)
	if err != nil || len(envoys) != 1 {
		t.Fatalf("%d Envoys, %v", len(envoys), err)
	}
	report := doctor.Examine(envoys[0], doctor.Weir{Document: document, TLS: new(bool)})
	for _, f := range report.Findings {
		t.Errorf("%s at %s: %s", f.ID, f.Where, f.Found)
	}
}

// Envoy Gateway accepts the policy that verifies Weir's certificate. It would send the authority by xDS, which is not
// running.
func TestVerifiedCertificate(t *testing.T) {
	t.Parallel()
	all := render(t, base, "gateway: { envoyGateway: { caConfigMap: ca } }\n")
	find(t, all, "BackendTLSPolicy", fullname)
	authority := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "ca", "namespace": namespace},
		"data": map[string]any{"ca.crt": string(pki.NewAuthority(t).PEM)},
	}
	made := bootstrap(t, translate(t, all, authority))
	cluster := made.Cluster(weirCluster)
	if socket := envoyrun.Object(cluster, "transport_socket_matches", 0, "transport_socket", "typed_config"); socket["sni"] != fullname+"."+namespace+".svc" {
		t.Errorf("the cluster of Weir is %v", cluster)
	}
}

// A client chooses neither a model server nor its tenant.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{values: oneSlot})
	foreign := newEngine(t)
	answers := r.send(chat("x-gateway-destination-endpoint", foreign.address(), "x-llm-d-inference-fairness-id", "another"))
	h, e := r.arrival()
	if got := h.header.Get("x-gateway-destination-endpoint"); got != e.address() {
		t.Errorf("the request for %s is at %s", got, e.address())
	}
	h.answered()
	served(t, "the request", answers)
	r.settled()
	if strings.Contains(r.metrics(), `flow="another"`) {
		t.Error("the client has chosen its flow")
	}
	if len(foreign.arrived) != 0 {
		t.Error("a request went to the address that a client named")
	}
}

// The same holds while Weir is away, and requests bypass it at once. Without the chart's policy for the Gateway a
// client's header arrives, and chooses.
func TestForgedHeadersPastWeir(t *testing.T) {
	for name, test := range map[string]struct {
		values  string
		arrives bool
	}{
		"with the policy":    {"", false},
		"without the policy": {"gateway: { clientPolicy: false }\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{values: test.values, edit: func(_ *testing.T, b envoyrun.Bootstrap) {
				resolve(b.Cluster(envoyrun.WeirCluster), "127.0.0.1:1") // an address without a listener
			}})
			named := r.engines[1]
			answers := r.send(chat("x-gateway-destination-endpoint", named.address()))
			h, e := r.arrival()
			if got := h.header.Get("x-gateway-destination-endpoint") == named.address(); got != test.arrives || got && e != named {
				t.Errorf("the client's header arrives: %v, at %s", got, e.address())
			}
			h.answered()
			served(t, "the request", answers)
		})
	}
}

// Weir counts the tokens of an answer whose body it sees, and of no other.
func TestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		values string
		input  float64
	}{
		"headers": {oneSlot, 0},
		"body":    {oneSlot + "gateway: { envoyGateway: { responseBody: Streamed } }\n", 7},
		"duplex":  {oneSlot + duplex, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{values: test.values})
			answers := r.send(chat())
			h, _ := r.arrival()
			h.answered()
			if got := served(t, "the request", answers); !strings.Contains(got.Body, `"total_tokens":12`) {
				t.Errorf("the client got %q", got.Body)
			}
			r.settled()
			if got := r.value("weir_extproc_usage_tokens_total", "kind", "input"); got != test.input {
				t.Errorf("%v tokens were read, want %v", got, test.input)
			}
			if got := r.value("weir_extproc_usage_unknown_total"); (got == 1) != (test.input == 0) {
				t.Errorf("%v requests are without usage", got)
			}
		})
	}
}

// Envoy Gateway gives the stream to Weir a timeout of 10 s, which cannot be changed. It does not end a request that
// waits longer: here it is 200 ms, and Weir's own TTL ends the request.
func TestTimeoutOfTheStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{
		values: oneSlot + "  fairRequestQueue: { queueTTL: 1s }\n",
		edit: func(t *testing.T, b envoyrun.Bootstrap) {
			service := envoyrun.Object(extProc(t, b), "grpc_service")
			if service["timeout"] != "10s" {
				t.Errorf("the timeout is %v", service["timeout"])
			}
			service["timeout"] = "0.2s"
		},
	})
	running, answers := r.fill(chat())
	if got := <-r.send(chat()); got.Status != http.StatusTooManyRequests && got.Status != http.StatusServiceUnavailable || got.Reason() != "ttl-expired" {
		t.Errorf("status %d, reason %q, %v", got.Status, got.Reason(), got.Err)
	}
	for i, h := range running {
		h.answered()
		served(t, "a request", answers[i])
	}
	r.settled()
}

// extProc returns the ext_proc filter.
func extProc(t *testing.T, b envoyrun.Bootstrap) map[string]any {
	t.Helper()
	filter := b.Filter("envoy.filters.http.ext_proc/" + weirCluster)
	if filter == nil {
		t.Fatalf("the filters are %v", b.Filters())
	}
	return filter
}

// A stopped Weir is not detected for messageTimeout. Then requests bypass it.
func TestStuckWeir(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{values: oneSlot +
		"  fairRequestQueue: { queueTTL: 500ms }\ngateway: { envoyGateway: { messageTimeout: 1s } }\n"})
	if err := r.epp.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	answers := r.send(chat())
	h, _ := r.arrival()
	stats, err := r.envoy.Stats(t.Context(), `ext_proc.*message_timeouts`)
	if err != nil {
		t.Fatal(err)
	}
	var timeouts int64
	for _, n := range stats {
		timeouts += n
	}
	if timeouts != 1 {
		t.Errorf("the request went past Weir with %v", stats)
	}
	if got := h.header.Values("x-gateway-destination-endpoint"); len(got) != 0 {
		t.Errorf("it has the destination %v", got)
	}
	h.answered()
	served(t, "the request", answers)
	if err := r.epp.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// Weir serves with its own certificate, which Envoy does not verify.
func TestTLS(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{values: oneSlot, secure: []string{}})
	answers := r.send(chat())
	h, e := r.arrival()
	if got := h.header.Get("x-gateway-destination-endpoint"); got != e.address() {
		t.Errorf("the request for %q is at %s", got, e.address())
	}
	h.answered()
	served(t, "the request", answers)
	r.settled()
}

// Weir reads a body far above Envoy Gateway's buffers of 32 KiB, which arrives whole. A body above the limit gets 413.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{values: oneSlot + "gateway: { maxRequestBody: 4Mi }\n"})
	large := chat()
	large.body = strings.Replace(large.body, "hello", strings.Repeat("hello ", 500_000), 1)
	answers := r.send(large)
	h, _ := r.arrival()
	if h.body != large.body {
		t.Errorf("%d of %d bytes arrive", len(h.body), len(large.body))
	}
	h.answered()
	served(t, "the request", answers)
	r.settled()
	large.body = strings.Replace(large.body, "hello", strings.Repeat("hello ", 500_000), 1)
	if got := <-r.send(large); got.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("a larger one gets status %d, %v", got.Status, got.Err)
	}
	r.settled()
}

// Envoy pings Weir every 15 s and waits 5 s for the answer, so it detects a lost machine within 20 s.
func TestPing(t *testing.T) {
	t.Parallel()
	cluster := bootstrap(t, translate(t, render(t, base))).Cluster(weirCluster)
	options := envoyrun.Object(cluster, "typed_extension_protocol_options", "envoy.extensions.upstreams.http.v3.HttpProtocolOptions")
	ping := envoyrun.Object(options, "explicit_http_config", "http2_protocol_options", "connection_keepalive")
	if ping["interval"] != "15s" || ping["timeout"] != "5s" {
		t.Errorf("the ping is %v, of the cluster %v", ping, cluster)
	}
}

// Endpoints of all ports of a pool are in the one cluster in which Envoy follows Weir's header.
func TestSeveralPorts(t *testing.T) {
	t.Parallel()
	made := bootstrap(t, translate(t, render(t, base, "pool: { targetPorts: [8000, 8001], appProtocol: kubernetes.io/h2c }\n")))
	cluster := made.Cluster(modelsCluster)
	var ports []any
	for _, locality := range envoyrun.List(cluster, "load_assignment", "endpoints") {
		ports = append(ports, envoyrun.Object(locality, "lb_endpoints", 0, "endpoint", "address", "socket_address")["port_value"])
	}
	if !slices.Equal(ports, []any{8000.0, 8001.0}) {
		t.Errorf("the ports are %v", ports)
	}
	policy := envoyrun.Object(cluster, "load_balancing_policy", "policies", 0, "typed_extension_config")
	if policy["name"] != "envoy.load_balancing_policies.override_host" {
		t.Errorf("the policy is %v", policy)
	}
	options := envoyrun.Object(cluster, "typed_extension_protocol_options", "envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config")
	if options["http2_protocol_options"] == nil {
		t.Errorf("Envoy speaks %v to model servers", options)
	}
}

// The filters have Weir's order: whole requests only.
func TestOrderOfFilters(t *testing.T) {
	t.Parallel()
	newRig(t, options{edit: func(t *testing.T, b envoyrun.Bootstrap) {
		if got := strings.Join(b.Filters(), " "); !strings.Contains(got, "envoy.filters.http.buffer envoy.filters.http.ext_proc/") {
			t.Errorf("the filters are %s", got)
		}
	}})
}
