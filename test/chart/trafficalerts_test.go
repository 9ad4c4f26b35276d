package chart

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/envoystream"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// With a real replica, faults of a gateway and too many requests make their own alerts fire.
func TestAlertsOfTraffic(t *testing.T) {
	env := cluster(t)
	ns := env.Namespace(t)
	const inPlainText = "tls: { enabled: false }\n"
	all := render(t, openMetrics, inPlainText,
		"config: { requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }, "+
			"fairRequestQueue: { totalCapacity: 2000, flowCapacity: 2000 } }\n")
	deploy(t, env, ns, all)
	modelServer(t, env, ns, "engine-0", "")
	d := replica(t, env, ns, all)
	d.await("it is ready", d.serving("readiness"))
	gateway := &gateway{d: d, conn: d.dial()}

	gateway.begin(envoystream.First("m")).answered("")
	d.fires("nothing", `weir_requests_total\{outcome="dispatched",pool="llama"\} 1`)

	// The limit of Envoy's default circuit breaker.
	var open []*ask
	for range 1024 {
		open = append(open, gateway.begin(envoystream.First("m")))
	}
	d.fires("the circuit breaker", `weir_extproc_streams\{pool="llama"\} 1024`, "WeirStreamsLimited")
	for _, a := range open {
		a.cancel()
	}
	d.fires("nothing any more", `weir_extproc_streams\{pool="llama"\} 0`)

	d.firesAgain("the gateway's endpoints", `weir_served_elsewhere_total{endpoint="127.0.0.1:8000",pool="llama"}`, func() {
		gateway.begin(envoystream.First("m")).answered("192.0.2.1:8000")
	}, "WeirServedElsewhere")

	d.firesAgain("a gateway that tells no usage", "weir_extproc_usage_unknown_total{pool=\"llama\"}", func() {
		gateway.begin(envoystream.First("m")).answeredBy("", false)
	}, "WeirUsageUnknown")

	d.firesAgain("another filter", `weir_extproc_placed_before_total{pool="llama"}`, func() {
		first := envoystream.First("m")
		first.MetadataContext = metadata("x-gateway-destination-endpoint", "192.0.2.1:8000")
		gateway.begin(first).replied()
	}, "WeirPlacedBefore")

	small := all.get(t, "ConfigMap/llama-weir").text("data", "weir.yaml")
	small = strings.NewReplacer("totalCapacity: 2000", "totalCapacity: 1", "flowCapacity: 2000", "flowCapacity: 1").Replace(small)
	expect.Replaced(t, filepath.Join(d.files["config"], "weir.yaml"), small)
	d.await("the queue is small", func() error {
		if !strings.Contains(d.debug("/debug/config"), "totalCapacity: 1\n") {
			return fmt.Errorf("the configuration is\n%s", d.debug("/debug/config"))
		}
		return nil
	})
	gateway.begin(envoystream.First("m")) // is served, and does not end
	gateway.begin(envoystream.First("m")) // waits
	const waiting = `weir_queue_length{model="m",pool="llama",target_model="m"}`
	d.await("one waits", func() error {
		if n := d.value(waiting); n != 1 {
			return fmt.Errorf("%v wait", n)
		}
		return nil
	})
	d.firesAgain("the queue", `weir_requests_total{outcome="flow-full",pool="llama"}`, func() {
		gateway.begin(envoystream.First("m")).replied()
	}, "WeirRejecting")
}

// gateway opens streams like an Envoy before the replica.
type gateway struct {
	d    *deployed
	conn *grpc.ClientConn
}

// dial connects to the ext_proc port, without TLS.
func (d *deployed) dial() *grpc.ClientConn {
	d.t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", d.ports.GRPC), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask is one request.
type ask struct {
	t      *testing.T
	stream envoystream.Stream
	cancel context.CancelFunc
}

func (g *gateway) begin(first *extprocv3.ProcessingRequest) *ask {
	g.d.t.Helper()
	ctx, cancel := context.WithCancel(g.d.t.Context())
	stream, err := envoystream.Open(ctx, g.conn, first)
	if err != nil {
		g.d.t.Fatal(err)
	}
	return &ask{g.d.t, stream, cancel}
}

// answered gets the request granted, and then answered by an endpoint, named in Envoy's form in the metadata of the
// answer's headers; "" is the endpoint that Weir picked. Its usage comes with its trailers.
func (a *ask) answered(address string) {
	a.t.Helper()
	a.answeredBy(address, true)
}

// answeredBy is answered, with or without usage.
func (a *ask) answeredBy(address string, usage bool) {
	a.t.Helper()
	picked, err := envoystream.Granted(a.stream)
	if err != nil {
		a.t.Fatal(err)
	}
	err = a.stream.Send(&extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: ":status", RawValue: []byte("200")}}}, EndOfStream: !usage,
		}},
		MetadataContext: metadata("x-gateway-destination-endpoint-served", cmp.Or(address, picked)),
	})
	if err != nil {
		a.t.Fatal(err)
	}
	if usage {
		a.tellUsage()
	}
	a.replied()
}

// tellUsage ends an answer with the usage that Envoy has read in it.
func (a *ask) tellUsage() {
	a.t.Helper()
	if _, err := a.stream.Recv(); err != nil {
		a.t.Fatal(err)
	}
	ten := wrapperspb.UInt64(10)
	read, err := anypb.New(&aiv3.TokenUsage{InputTokens: ten, OutputTokens: ten})
	if err != nil {
		a.t.Fatal(err)
	}
	err = a.stream.Send(&extprocv3.ProcessingRequest{
		Request:         &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{}},
		MetadataContext: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"envoy.ai.token_usage": read}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

// replied ends the stream after Weir's next reply.
func (a *ask) replied() {
	a.t.Helper()
	if _, err := a.stream.Recv(); err != nil {
		a.t.Fatal(err)
	}
	a.cancel()
}

// metadata is a field of Envoy's dynamic metadata for load balancing.
func metadata(key, value string) *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"envoy.lb": {Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}},
	}}
}

// value returns the value of a series, 0 if there is none.
func (d *deployed) value(series string) float64 {
	d.t.Helper()
	_, text := d.scrape("")
	for line := range strings.Lines(text) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			v, err := strconv.ParseFloat(number, 64)
			if err != nil {
				d.t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// firesAgain causes a fault twice, each of which raises a counter, and checks that exactly these alerts would fire if
// it went on once a minute.
func (d *deployed) firesAgain(what, counter string, fault func(), want ...string) {
	d.t.Helper()
	once := func() string {
		before := d.value(counter)
		fault()
		d.await(what, func() error {
			if d.value(counter) == before {
				return fmt.Errorf("%s is still %v", counter, before)
			}
			return nil
		})
		return d.samples()
	}
	firing(d.t, what, growing(d.t, once(), once()), want...)
}

// growing returns the samples of two scrapes as series that continue their growth.
func growing(t *testing.T, before, after string) string {
	t.Helper()
	old := map[string]float64{}
	parse := func(line string) (series string, value float64) {
		line = strings.TrimSpace(line)
		at := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		return line[:at], value
	}
	for line := range strings.Lines(before) {
		series, v := parse(line)
		old[series] = v
	}
	var all strings.Builder
	for line := range strings.Lines(after) {
		series, v := parse(line)
		if was, known := old[series]; known && v > was {
			fmt.Fprintf(&all, "%s %g+%gx\n", series, v, v-was)
		} else {
			fmt.Fprintf(&all, "%s %g\n", series, v)
		}
	}
	return all.String()
}

// A real Envoy with the rendered configuration cannot reach Weir. Prometheus reads its bypassing requests at the port
// named by the PodMonitor.
func TestAlertOfRequestsPastWeir(t *testing.T) {
	for _, mode := range []string{"sidecar", "standalone"} {
		t.Run(mode, func(t *testing.T) {
			engine, err := modelsim.Start(modelsim.Instant())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(engine.Close)
			all := render(t, minimal, "envoy: { mode: "+mode+", podMonitor: { enabled: true } }\n")
			envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{
				Config: envoyConfig(t, all), Weir: "127.0.0.1:1", ModelServers: []string{engine.Address()},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(envoy.Kill)
			scrape := func() string {
				t.Helper()
				lines := askedMetrics(t).FindAllString(expect.Page(t, envoy.StatsURL()+"/metrics"), -1)
				if len(lines) != 1 {
					t.Fatalf("of Envoy the alerts have %q", lines)
				}
				return strings.Replace(lines[0], "{", `{job="llama/envoy",pod="envoy-0",`, 1) + "\n"
			}
			weir := strings.TrimSuffix(healthy, quietEnvoy)
			before := scrape()
			firing(t, "nothing", weir+before)
			expect.Page(t, envoy.URL()+"/v1/models")
			expect.True(t, "the counter rises", func() bool { return scrape() != before })
			firing(t, "Envoy's way to Weir", weir+growing(t, before, scrape()), "WeirBypassed")
		})
	}
}
