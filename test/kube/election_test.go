package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// electing has the permissions beyond those of a single replica.
const electing = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: weir-election}
rules:
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], resourceNames: [weir], verbs: [get, patch]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: weir, labels: {kubernetes.io/service-name: weir}}
addressType: IPv4
ports: [{name: grpc, port: 9002}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: weir-election}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: weir-election}
subjects: [{kind: ServiceAccount, name: weir}]
`

// replica is an epp in a pod of its own.
type replica struct {
	*epp
	pod string
}

// replica starts an epp in a pod, which is made if it is missing: a second process in it is a restarted container.
func (w *world) replica(pod string, flags ...string) *replica {
	w.t.Helper()
	pods := w.env.Clients().CoreV1().Pods(w.namespace)
	made, err := pods.Get(w.t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		w.pod(pod, "", true, appWeir)
		if made, err = pods.Get(w.t.Context(), pod, metav1.GetOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.environment = []string{"POD_NAME=" + pod, "POD_UID=" + string(made.UID), "NAMESPACE=" + w.namespace, "POD_IP=10.9.9.9"}
	if slices.Contains(flags, "--ha-enable-leader-election") {
		flags = append(flags, "--leader-endpoint-slice=weir")
	}
	return &replica{epp: w.epp(append([]string{"--pool-name=chat"}, flags...)...), pod: pod}
}

// appWeir makes a pod one of Weir's.
func appWeir(p *corev1.Pod) { p.Labels = map[string]string{"app": "weir"} }

// published lists the pods behind the leader's Service.
func (w *world) published() string {
	w.t.Helper()
	slice, err := w.env.Clients().DiscoveryV1().EndpointSlices(w.namespace).Get(w.t.Context(), "weir", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range slice.Endpoints {
		names = append(names, e.TargetRef.Name)
	}
	return strings.Join(names, " ")
}

// leads waits until a replica leads: it is ready, the Service leads only to it, and its gauge says so.
func (r *replica) leads(w *world) {
	w.t.Helper()
	expect.Eventually(w.t, r.pod+" leads", func() error {
		leader, _ := r.metric(`weir_leader{pool="chat"}`)
		if !r.serving("readiness") || leader != 1 || w.published() != r.pod {
			return fmt.Errorf("readiness %t, weir_leader %g, the Service leads to %q", r.serving("readiness"), leader, w.published())
		}
		return nil
	})
}

// follows waits until a replica follows: it has synced and is not ready.
func (r *replica) follows(w *world) {
	w.t.Helper()
	expect.Eventually(w.t, r.pod+" follows", func() error {
		leader, known := r.metric(`weir_leader{pool="chat"}`)
		if r.serving("readiness") || !r.serving("synced") || !known || leader != 0 {
			return fmt.Errorf("readiness %t, synced %t, weir_leader %g", r.serving("readiness"), r.serving("synced"), leader)
		}
		return nil
	})
}

// One of two replicas leads and is published. The other one follows, and serves requests that reach it. At SIGTERM the
// Lease changes hands within the default retry period of 2 s, long before its end. After a kill, the next leader
// follows at the end of the Lease.
func TestElection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, electing, pool)
	w.pod("a", "10.0.0.1", true)
	first := w.replica("weir-0", "--ha-enable-leader-election")
	first.leads(w)
	second := w.replica("weir-1", "--ha-enable-leader-election")
	second.follows(w)
	r := second.send("chat")
	if at := r.granted(t); at != "10.0.0.1:8000" {
		t.Errorf("the follower sends a request to %q", at)
	}
	first.wantMetric(`weir_foreign_stock{pool="chat"}`, 1)
	r.end()
	first.wantMetric(`weir_foreign_stock{pool="chat"}`, 0)

	ended := time.Now()
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect.Eventually(t, "the second one is ready", func() error {
		if !second.serving("readiness") {
			return errors.New("it is not")
		}
		return nil
	})
	if took := time.Since(ended); took > 7*time.Second {
		t.Errorf("the second one is ready %v after SIGTERM to the first, want 2 s, and on a busy machine 7 s", took)
	} else {
		t.Logf("the second one is ready %v after SIGTERM", took)
	}
	second.leads(w)

	third := w.replica("weir-2", "--ha-enable-leader-election", "--leader-election-lease-duration=4s", "--leader-election-retry-period=1s")
	third.follows(w)
	killed := time.Now()
	_ = second.Kill()
	third.wantMetric(`weir_leader{pool="chat"}`, 1)
	if took := time.Since(killed); took < 10*time.Second || took > 22*time.Second { // the second one's duration counts
		t.Errorf("the third one leads %v after SIGKILL of a leader with a Lease of 15 s", took)
	}
	third.leads(w) // also of a lost node: nothing leads to the last one any more
	again := w.replica("weir-1", "--ha-enable-leader-election")
	again.follows(w)
	third.leads(w)
}

// behind starts an Envoy before several replicas, with a gRPC health check of each one's readiness every 250 ms. edit
// changes its configuration.
func (es *engines) behind(config string, edit func(envoyrun.Bootstrap), replicas []*replica, ips ...string) *envoyrun.Envoy {
	es.t.Helper()
	var hosts []any
	for _, r := range replicas {
		address := func(at string) (string, int) {
			host, port, err := net.SplitHostPort(at)
			if err != nil {
				es.t.Fatal(err)
			}
			n, _ := strconv.Atoi(port)
			return host, n
		}
		host, port := address(r.Address)
		_, health := address(r.Health)
		hosts = append(hosts, map[string]any{"endpoint": map[string]any{
			"address":             map[string]any{"socket_address": map[string]any{"address": host, "port_value": port}},
			"health_check_config": map[string]any{"port_value": health},
		}})
	}
	envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{
		Config: config, Weir: replicas[0].Address, ModelServers: es.addresses(ips...),
		Edit: func(b envoyrun.Bootstrap) error {
			cluster := b.Cluster(envoyrun.WeirCluster)
			cluster["load_assignment"] = map[string]any{
				"cluster_name": envoyrun.WeirCluster, "endpoints": []any{map[string]any{"lb_endpoints": hosts}},
			}
			cluster["health_checks"] = []any{map[string]any{
				"grpc_health_check": map[string]any{"service_name": "readiness"},
				"interval":          "0.25s", "no_traffic_interval": "0.25s", "timeout": "1s",
				"healthy_threshold": 1, "unhealthy_threshold": 1,
			}}
			edit(b)
			return nil
		},
	})
	if err != nil {
		es.t.Fatal(err)
	}
	es.t.Cleanup(envoy.Kill)
	return envoy
}

// refusePlaceless lets answers go on when Weir dies, and answers 503 to requests that Weir has not placed.
func refusePlaceless(b envoyrun.Bootstrap) {
	filter := b.Filter(envoyrun.ExtProcFilter)
	filter["failure_mode_allow"] = true
	filter["route_cache_action"] = "CLEAR" // the route is chosen again, by Weir's header
	delete(filter, "status_on_error")
	host := envoyrun.Object(b.ConnectionManager(), "route_config", "virtual_hosts", 0)
	routes := envoyrun.List(host, "routes")
	for _, route := range routes {
		match := envoyrun.Object(route, "match")
		match["headers"] = append(envoyrun.List(match, "headers"),
			map[string]any{"name": "x-gateway-destination-endpoint", "present_match": true})
	}
	host["routes"] = append(routes, map[string]any{
		"match": map[string]any{"prefix": "/"}, "direct_response": map[string]any{"status": http.StatusServiceUnavailable},
	})
}

// try sends a request and returns the status of its answer; 0: there was none.
func try(ctx context.Context, envoy *envoyrun.Envoy) int {
	return expect.Post(ctx, envoy.URL()+"/v1/completions", `{"model":"tiny","prompt":"Hello","max_tokens":8}`,
		sentHeader, strconv.FormatInt(time.Now().UnixNano(), 10)).Status
}

// quick is an election with short times for the tests.
var quick = []string{
	"--ha-enable-leader-election", "--leader-election-lease-duration=4s", "--leader-election-retry-period=500ms", "--probe-path=",
}

// The leader is killed under load, behind an Envoy that refuses requests that Weir has not placed, and lets running
// answers go on. Once the follower is ready, and Envoy has checked it, no request fails. From the kill on, the engines
// run more than the bound only by the requests that the leader sent after its last record, which no replica could know.
func TestLeaderKilledUnderLoad(t *testing.T) {
	w := newWorld(t)
	const (
		service = 2 * time.Second
		bound   = 2 * 16 // of both engines
		senders = 3 * bound
	)
	config := modelsim.Fixed(2*senders, service) // all requests run at once
	config.Records, config.TagHeader = 10_000, sentHeader
	pods := startEngines(t, config)
	const one, two = "127.0.4.1", "127.0.4.2"
	w.apply(role, electing, strings.ReplaceAll(pool, "number: 8000", fmt.Sprint("number: ", pods.port())))
	w.pod("first", one, true)
	w.pod("second", two, true)
	flags := append([]string{ // a window that ends after the test, and is longer than a request
		"--watermark-per-backend=16", "--lower-bound-per-backend=16", "--upper-bound-per-backend=16", "--takeover-window=6s",
	}, quick...)
	leader := w.replica("weir-0", flags...)
	leader.leads(w)
	follower := w.replica("weir-1", flags...)
	follower.follows(w)
	envoy := pods.behind("fail-closed", refusePlaceless, []*replica{leader, follower}, one, two)

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var strict atomic.Bool // from now on no request may fail
	var served, failed, early atomic.Int64
	for i := range senders {
		clients.Go(func() {
			time.Sleep(time.Duration(i) * service / bound) // so that requests end evenly, as a record falls
			for ctx.Err() == nil {
				must := strict.Load()
				switch status := try(ctx, envoy); {
				case ctx.Err() != nil:
				case status == http.StatusOK:
					served.Add(1)
				case must:
					failed.Add(1)
				default:
					early.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	defer clients.Wait()
	defer stop()
	expect.Eventually(t, "requests are served", func() error {
		if n := served.Load(); n < 2*bound {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	if n := early.Load(); n != 0 {
		t.Errorf("%d requests failed before the leader was killed", n)
	}
	killed := time.Now()
	_ = leader.Kill()
	expect.Eventually(t, "the follower is ready", func() error {
		if !follower.serving("readiness") {
			return errors.New("it is not")
		}
		return nil
	})
	took := time.Since(killed)
	if most := 4*time.Second + 500*time.Millisecond + 4*time.Second; took > most { // the Lease, a look, and a busy machine
		t.Errorf("the follower was ready after %v, want at most %v", took, most)
	}
	time.Sleep(2 * time.Second) // Envoy checks every 250 ms
	before := served.Load()
	strict.Store(true)
	time.Sleep(5 * time.Second)
	t.Logf("the follower was ready after %v; until then %d requests failed; %d were served in 5 s after it", took, early.Load(), served.Load()-before)
	if n := failed.Load(); n != 0 {
		t.Errorf("%d requests failed after the follower was ready", n)
	}
	if served.Load() == before {
		t.Error("none was served after the follower was ready")
	}

	// The engines' view, and the dead leader's own Lease.
	record := w.lastRecord("weir-weir-0")
	seen := append(pods.at(one).Records(), pods.at(two).Records()...)
	unrecorded := 0
	for _, r := range seen {
		if sent, err := strconv.ParseInt(r.Tag, 10, 64); err != nil {
			t.Fatal(err)
		} else if time.Unix(0, sent).Before(killed) && r.Arrived.After(record) {
			unrecorded++
		}
	}
	atKill, most := running(seen, killed)
	t.Logf("%d requests ran when the leader was killed, %v after its last record, since when it had sent %d; at most %d ran from then on",
		atKill, killed.Sub(record), unrecorded, most)
	if atKill < bound/2 {
		t.Errorf("%d requests ran when the leader was killed: that is no load for a bound of %d", atKill, bound)
	}
	if most > bound+unrecorded {
		t.Errorf("%d requests ran at a time after the kill, want at most the bound, %d, and %d that were not recorded", most, bound, unrecorded)
	}
}

// lastRecord returns the time of the record in a replica's Lease.
func (w *world) lastRecord(lease string) time.Time {
	w.t.Helper()
	l, err := w.env.Clients().CoordinationV1().Leases(w.namespace).Get(w.t.Context(), lease, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var record struct{ Time time.Time }
	if err := json.Unmarshal([]byte(l.Annotations["weir.dev/in-flight"]), &record); err != nil {
		w.t.Fatal(err)
	}
	return record.Time
}

// running returns the number of the requests at the engines at a time, and the largest number at once since then.
func running(seen []modelsim.Record, since time.Time) (then, most int) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, r := range seen {
		if r.Arrived.Before(since) {
			then++
		} else {
			changes = append(changes, change{r.Arrived, 1})
		}
		if ended := r.Ended; ended.IsZero() {
			continue
		} else if ended.Before(since) {
			then--
		} else {
			changes = append(changes, change{ended, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), a.by-b.by) })
	most = then
	for now, i := then, 0; i < len(changes); i++ {
		now += changes[i].by
		most = max(most, now)
	}
	return then, most
}

// A killed leader leaves its requests at the engines, whose answers go on: an Envoy that fails open does not cut them
// off. The next leader counts them at their engines: here one engine is full and gets nothing, and the other one gets
// its own.
func TestNextLeaderCountsWhatTheLastOneLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const service = 10 * time.Second
	pods := startEngines(t, modelsim.Fixed(64, service))
	const one, two = "127.0.5.1", "127.0.5.2"
	w.apply(role, electing, strings.ReplaceAll(pool, "number: 8000", fmt.Sprint("number: ", pods.port())))
	w.pod("first", one, true)
	w.pod("second", two, false)
	flags := append([]string{ // a window in which a record hardly falls during the test
		"--watermark-per-backend=4", "--lower-bound-per-backend=4", "--upper-bound-per-backend=4", "--takeover-window=1h",
	}, quick...)
	leader := w.replica("weir-0", flags...)
	leader.leads(w)
	follower := w.replica("weir-1", flags...)
	follower.follows(w)
	envoy := pods.behind("recommended", func(envoyrun.Bootstrap) {}, []*replica{leader, follower}, one, two)

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	send := func(n int) {
		for range n {
			clients.Go(func() {
				if status := try(ctx, envoy); status != http.StatusOK && ctx.Err() == nil {
					t.Errorf("status %d", status)
				}
			})
		}
	}
	running := func() [2]int { return [2]int{pods.at(one).Stats().InFlight, pods.at(two).Stats().InFlight} }
	send(4) // exactly the bound of the one that is ready
	follower.wantMetric(`weir_foreign_stock{pool="chat"}`, 4)
	w.status("second", two, true)
	follower.wantMetric(`weir_ready_backends{pool="chat"}`, 2)
	_ = leader.Kill()
	expect.Eventually(t, "the follower is ready", func() error {
		if !follower.serving("readiness") {
			return errors.New("it is not")
		}
		return nil
	})
	time.Sleep(2 * time.Second) // Envoy checks every 250 ms
	if n := running(); n != [2]int{4, 0} {
		t.Fatalf("%v requests run at the engines when the follower is ready, want the 4 that the last leader sent", n)
	}
	send(8)
	follower.wantQueued(4)
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if n := running(); n[0] > 4 || n[1] > 4 {
			t.Fatalf("%v requests run at the engines, and the bound of each is 4", n)
		}
	}
	if n := running(); n != [2]int{4, 4} {
		t.Errorf("%v requests run at the engines, want 4 at each", n)
	}
}

// A killed and restarted container counts its earlier process's requests. When the records have fallen to zero, nothing
// is held back.
func TestRestartedContainerCountsWhatItLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	flags := []string{
		"--takeover-window=12s", "--watermark-per-backend=4", "--lower-bound-per-backend=4", "--upper-bound-per-backend=4",
	}
	first := w.replica("weir-0", flags...)
	first.ready(true)
	for range 4 {
		first.send("chat").granted(t)
	}
	expect.Eventually(t, "they are on record", func() error {
		lease, err := w.env.Clients().CoordinationV1().Leases(w.namespace).Get(t.Context(), "weir-weir-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if text := lease.Annotations["weir.dev/in-flight"]; !strings.Contains(text, `"total":4`) || lease.Labels["weir.dev/pool"] != "chat" {
			return fmt.Errorf("the record is %s", text)
		}
		return nil
	})
	_ = first.Kill()
	second := w.replica("weir-0", flags...)
	second.ready(true)
	if n, _ := second.metric(`weir_foreign_stock{pool="chat"}`); n < 3 {
		t.Errorf("the restarted container counts %g of 4 requests when it is ready", n)
	}
	second.wantMetric(`weir_foreign_stock{pool="chat"}`, 0)
	for range 4 {
		second.send("chat").granted(t)
	}
}
