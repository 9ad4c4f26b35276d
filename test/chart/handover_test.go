package chart

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
	"github.com/weir-epp/weir/internal/modelsim"
)

// The load of the handover: the bound is full all the time, and four requests are dispatched each second.
const (
	handoverBound   = 16
	handoverService = 4 * time.Second
	handoverClients = 3 * handoverBound
	handoverRetry   = 2 * time.Second // the chart's retryPeriod
	handoverLease   = 15 * time.Second
	healthCheck     = 2 * time.Second  // its interval and its timeout
	ping            = 20 * time.Second // of Envoy's connections to Weir: its interval and its timeout
	late            = 4 * time.Second  // for a busy machine
)

// A leader ends under load, and its successor dies, behind the Envoy that the chart renders, which resolves the
// replicas by DNS. At the planned handover no request bypasses Weir or fails, and at most the dispatches of a retry
// period run beyond the bound. After the death requests bypass Weir for at most a health check. Then a follower serves,
// and leads when the Lease is over.
func TestHandoverBehindTheChartsEnvoy(t *testing.T) {
	h := newHandover(t, "envoy: { mode: standalone }\n")
	names := h.behindTheChartsEnvoy()
	h.plan(func() { names.set(h.second.ip) }) // DNS has no ending pod
	third := h.replica("127.0.9.3")
	names.set(h.second.ip, third.ip)
	third.await("the third replica has synced", third.serving("synced"))
	h.kill(h.second, third, healthCheck+late)
}

// The leader's node is lost: it sends nothing more, no connection ends, DNS still has the pod, and the EndpointSlice
// names it. Requests after a health check go to a follower, and none of them bypasses Weir. Those that the leader had
// bypass it, each once, when the ping of their connection gets no answer, and not later. The follower leads when the
// Lease is over, and the slice names it. The follower keeps free the stock in the lost one's record, for as long as
// requests run at the engines: with the chart's 60 s the load, three times the pool's stock, would wait for as long as
// its TTL.
func TestLostNodeBehindTheChartsEnvoy(t *testing.T) {
	h := newHandover(t, fmt.Sprintf("envoy: { mode: standalone }\ntakeoverWindow: %v\n", 2*handoverService))
	h.behindTheChartsEnvoy()
	before := h.passed()
	lost := time.Now()
	if err := h.first.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.first.process.Signal(syscall.SIGCONT) }()
	time.Sleep(healthCheck + late)
	var fresh sync.WaitGroup
	for i := range 8 { // these know nothing of the lost leader
		fresh.Go(func() {
			time.Sleep(time.Duration(i) * time.Second)
			sent := time.Now()
			if a := h.ask(context.Background()); a.Status != http.StatusOK {
				t.Errorf("a request that came %v after the node was lost, after %v: %v", sent.Sub(lost), time.Since(sent), a)
			}
		})
	}
	for !h.isReady(h.second) || !h.leadsTo(h.second) {
		if time.Since(lost) > handoverLease+handoverRetry+late {
			t.Fatalf("no replica leads, or the slice has no other address, %v after the node was lost", time.Since(lost))
		}
		time.Sleep(20 * time.Millisecond)
	}
	led := time.Since(lost)
	time.Sleep(ping + late - time.Since(lost))
	had := h.passed() - before
	fresh.Wait()
	served := h.served.Load()
	time.Sleep(2 * handoverService)
	if n := h.passed() - before - had; n != 0 {
		t.Errorf("%d requests went past Weir more than %v after the node was lost", n, ping+late)
	}
	if had > handoverClients || h.served.Load() == served {
		t.Errorf("%d requests went past Weir, want at most the %d that the leader had; %d were served, %d then", had, handoverClients, served, h.served.Load())
	}
	t.Logf("the next one led, and the slice named it, %v after the node was lost; %d requests that the lost one had went past Weir", led, had)
}

// leadsTo reports whether the EndpointSlice of the leader names only this replica.
func (h *handover) leadsTo(d *deployed) bool {
	slice, err := h.env.Clients().DiscoveryV1().EndpointSlices(h.ns).Get(h.t.Context(), "llama-weir", metav1.GetOptions{})
	return err == nil && len(slice.Endpoints) == 1 && hostOf(slice.Endpoints[0].Addresses[0]) == d.ip
}

// behindTheChartsEnvoy starts Envoy as rendered, with a DNS server for the names of the replicas, and the load.
func (h *handover) behindTheChartsEnvoy() *nameServer {
	h.t.Helper()
	names := startNameServer(h.t, "llama-weir-replicas", h.first.ip, h.second.ip)
	h.front(func(rendered, b envoyrun.Bootstrap) {
		for _, name := range []string{"weir_leader", "weir_replicas"} {
			cluster := b.Cluster(name)
			maps.Copy(cluster, rendered.Cluster(name)) // as rendered: by name, with TLS
			cluster["typed_dns_resolver_config"] = names.resolver()
		}
	})
	return names
}

// The same behind a gateway, whose Envoy follows the Service's EndpointSlices. It has the leader alone, so after a
// death it has no endpoint until the next one is published.
func TestHandoverBehindAGateway(t *testing.T) {
	h := newHandover(t, "")
	file := filepath.Join(t.TempDir(), "eds.json")
	stop := h.follow(file)
	defer stop()
	h.front(func(_, b envoyrun.Bootstrap) {
		b["node"] = map[string]any{"id": "gateway", "cluster": "gateway"}
		cluster := b.Cluster(envoyrun.WeirCluster)
		delete(cluster, "load_assignment")
		cluster["type"] = "EDS"
		cluster["eds_cluster_config"] = map[string]any{"eds_config": map[string]any{
			"resource_api_version": "V3", "path_config_source": map[string]any{"path": file},
		}}
		cluster["transport_socket"] = map[string]any{
			"name": "envoy.transport_sockets.tls", "typed_config": map[string]any{
				"@type":              "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"common_tls_context": map[string]any{"alpn_protocols": []any{"h2"}},
			},
		}
	})
	h.plan(func() {})
	third := h.replica("127.0.9.3")
	third.await("the third replica has synced", third.serving("synced"))
	h.kill(h.second, third, handoverLease+handoverRetry+late)
}

// handover is two replicas of the chart before a model server, and load through an Envoy.
type handover struct {
	t             *testing.T
	env           *kubeenv.Env
	ns            string
	all           objects
	engine        *modelsim.Server
	first, second *deployed
	envoy         *envoyrun.Envoy
	failed        atomic.Int64
	served        atomic.Int64
	mu            sync.Mutex
	failures      []expect.Answer // the first few, guarded by mu
}

// fails counts a failed answer.
func (h *handover) fails(a expect.Answer) {
	h.failed.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.failures) < 4 {
		h.failures = append(h.failures, a)
	}
}

// firstFailures are the first few.
func (h *handover) firstFailures() []expect.Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.failures)
}

func newHandover(t *testing.T, values string) *handover {
	h := &handover{t: t, env: cluster(t)}
	h.ns = h.env.Namespace(t)
	h.all = render(t, h.startEngine(), values)
	deploy(t, h.env, h.ns, h.all)
	modelServer(t, h.env, h.ns, "engine-0", "other: x")
	h.first = h.replica("127.0.9.1")
	h.first.await("the first replica leads", h.first.serving("readiness"))
	h.second = h.replica("127.0.9.2")
	h.second.await("the second replica has synced", h.second.serving("synced"))
	return h
}

// startEngine starts the model server, and returns the chart's values for it.
func (h *handover) startEngine() (values string) {
	h.t.Helper()
	config := modelsim.Fixed(8*handoverClients, handoverService) // all that is sent runs at once
	config.Records = 10_000
	var err error
	if h.engine, err = modelsim.Start(config); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.engine.Close)
	_, port, _ := net.SplitHostPort(h.engine.Address())
	return fmt.Sprintf(`pool: { matchLabels: { app: llama }, targetPorts: [%s] }
config: { profile: recommended, requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %[2]d, upperBoundPerBackend: %[2]d } }
`, port, handoverBound)
}

func (h *handover) replica(ip string) *deployed {
	return replicaAt(h.t, h.env, h.ns, h.all, h.env.Admin().Host, ip)
}

// front starts Envoy with the chart's rendered configuration, or a shipped one if it renders none, and the load.
func (h *handover) front(edit func(rendered, b envoyrun.Bootstrap)) {
	h.t.Helper()
	config := "recommended"
	if h.all["ConfigMap/llama-weir-envoy"] != nil {
		config = envoyConfig(h.t, h.all)
	}
	rendered, err := envoyrun.Load(config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.envoy, err = envoyrun.Start(context.Background(), envoyrun.Options{
		Config: config, Weir: h.first.ip + ":9002", ModelServers: []string{h.engine.Address()},
		Edit: func(b envoyrun.Bootstrap) error { edit(rendered, b); return nil },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.envoy.Kill)
	time.Sleep(healthCheck + late) // it has asked
	ctx, stop := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	h.t.Cleanup(func() { stop(); clients.Wait() })
	for i := range handoverClients {
		clients.Go(func() {
			time.Sleep(time.Duration(i) * handoverService / handoverBound) // so that requests end evenly
			for ctx.Err() == nil {
				if a := h.ask(ctx); a.Status == http.StatusOK {
					h.served.Add(1)
				} else if ctx.Err() == nil {
					h.fails(a)
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	h.first.await("requests are served", func() error {
		if n := h.served.Load(); n < 2*handoverBound {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

// ask sends a request of the load.
func (h *handover) ask(ctx context.Context) expect.Answer {
	return expect.Post(ctx, h.envoy.URL()+"/v1/completions", `{"model":"tiny","prompt":"Hello","max_tokens":8}`)
}

// passed returns the number of requests that bypassed Weir.
func (h *handover) passed() int64 {
	h.t.Helper()
	n, err := h.passedYet()
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// passedYet is passed for other goroutines than the test's.
func (h *handover) passedYet() (n int64, err error) {
	stats, err := h.envoy.Stats(context.Background(), "ext_proc.*failure_mode_allowed")
	for _, v := range stats {
		n += v
	}
	return n, err
}

// plan ends the first replica, and returns after its end.
func (h *handover) plan(terminated func()) {
	h.t.Helper()
	if n := h.passed() + h.failed.Load(); n != 0 {
		h.t.Fatalf("%d requests went past Weir, or failed, before anything happened: %v", n, h.firstFailures())
	}
	begun := time.Now()
	if err := h.first.process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	terminated()
	ready, gap := time.Duration(0), 0
	for !h.first.process.Ended() {
		first, second := h.isReady(h.first), h.isReady(h.second)
		if second && ready == 0 {
			ready = time.Since(begun)
		}
		if !first && !second {
			gap++
		}
		if time.Since(begun) > 90*time.Second {
			h.t.Fatal("the first replica does not end")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if gap > 0 || ready == 0 {
		h.t.Errorf("at %d looks no replica was ready; the second one was after %v", gap, ready)
	}
	h.first.await("it is the second one that leads", h.second.serving("readiness"))
	if passed, failed := h.passed(), h.failed.Load(); passed != 0 || failed != 0 {
		h.t.Errorf("%d requests went past Weir and %d failed at the handover: %v", passed, failed, h.firstFailures())
	}
	most := mostAtOnce(h.engine.Records())
	dispatched := int(handoverRetry * handoverBound / handoverService)
	if most > handoverBound+dispatched {
		h.t.Errorf("%d requests ran at once, want at most the bound, %d, and the %d of a retry period", most, handoverBound, dispatched)
	}
	h.t.Logf("the second replica was ready after %v, the first one had ended after %v; at most %d ran at once, and the bound is %d",
		ready, time.Since(begun), most, handoverBound)
}

// isReady reports whether a replica, which may have ended, is ready.
func (h *handover) isReady(d *deployed) bool {
	return healthOf(d.host(), d.ports.Health, "readiness")
}

// kill kills the leader. Requests may bypass Weir for the given time, and no longer, until the next one leads and after
// it.
func (h *handover) kill(leader, next *deployed, most time.Duration) {
	h.t.Helper()
	before := h.passed()
	killed := time.Now()
	_, _ = leader.process.Stop(0)
	time.Sleep(most - time.Since(killed))
	during, served := h.passed(), h.served.Load()
	const longest = handoverLease + handoverRetry + 2*late
	for !h.isReady(next) {
		if time.Since(killed) > longest {
			h.t.Fatalf("no replica leads %v after the death of the leader", time.Since(killed))
		}
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(killed)
	time.Sleep(handoverService) // and then, too
	if n := h.passed() - during; n != 0 {
		h.t.Errorf("%d requests went past Weir more than %v after the death of the leader", n, most)
	}
	if h.served.Load() == served {
		h.t.Error("no request was served")
	}
	h.t.Logf("the next one was ready %v after the death; in the first %v %d requests went past Weir", took, most, during-before)
}

// follow writes the endpoints of the leader's Service to a file for Envoy, like a gateway's control plane.
func (h *handover) follow(file string) (stop func()) {
	h.t.Helper()
	write := func() {
		slice, err := h.env.Clients().DiscoveryV1().EndpointSlices(h.ns).Get(context.Background(), "llama-weir", metav1.GetOptions{})
		if err != nil {
			return
		}
		hosts := []any{}
		for _, e := range slice.Endpoints {
			hosts = append(hosts, map[string]any{"endpoint": map[string]any{"address": map[string]any{
				"socket_address": map[string]any{"address": hostOf(e.Addresses[0]), "port_value": *slice.Ports[0].Port},
			}}})
		}
		text, _ := json.Marshal(map[string]any{"version_info": slice.ResourceVersion, "resources": []any{map[string]any{
			"@type":        "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
			"cluster_name": envoyrun.WeirCluster, "endpoints": []any{map[string]any{"lb_endpoints": hosts}},
		}}})
		if old, _ := os.ReadFile(file); bytes.Equal(old, text) {
			return
		}
		if os.WriteFile(file+".new", text, 0o600) == nil {
			_ = os.Rename(file+".new", file)
		}
	}
	write()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			write()
		}
	})
	return func() { cancel(); done.Wait() }
}

// mostAtOnce returns the largest number of requests at an engine at once.
func mostAtOnce(seen []modelsim.Record) (most int) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, r := range seen {
		changes = append(changes, change{r.Arrived, 1})
		if !r.Ended.IsZero() {
			changes = append(changes, change{r.Ended, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), a.by-b.by) })
	now := 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}
