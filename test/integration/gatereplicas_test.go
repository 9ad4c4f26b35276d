package integration

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
)

// replicas is a scene whose Envoy, with gate.yaml, lists several epps.
type replicas struct {
	*scene
	epps []*epp
}

// startReplicas starts epps and the Envoy in front of a model server.
func startReplicas(t *testing.T, n int, p *parked) *replicas {
	t.Helper()
	r := &replicas{scene: &scene{t: t, with: setup{config: smgTiers + "requestQueueController: { slotsPerBackend: 100 }\n", envoys: []string{"gate"}}}}
	server := serve(t, p)
	var addresses []string
	for range n {
		e := startEPP(t, r.with, []string{server})
		r.epps, addresses = append(r.epps, e), append(addresses, e.Address)
	}
	envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{
		Config: "gate", ModelServers: []string{server}, Weir: strings.Join(addresses, ","), Concurrency: 2,
		Edit: r.watched,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { envoy.Kill() })
	r.envoys, r.epp = []*envoyrun.Envoy{envoy}, r.epps[0]
	return r
}

// watched makes Envoy check the health of each epp, as docs/two-replicas.md advises.
func (r *replicas) watched(b envoyrun.Bootstrap) error {
	cluster := b.Cluster(envoyrun.WeirCluster)
	for i, e := range envoyrun.List(cluster, "load_assignment", "endpoints", 0, "lb_endpoints") {
		_, port, err := net.SplitHostPort(r.epps[i].Health)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return err
		}
		envoyrun.Object(e, "endpoint")["health_check_config"] = map[string]any{"port_value": n}
	}
	cluster["health_checks"] = []any{map[string]any{
		"grpc_health_check": map[string]any{"service_name": "readiness"},
		"interval":          "1s", "no_traffic_interval": "1s", "timeout": "1s",
		"healthy_threshold": 1, "unhealthy_threshold": 1,
	}}
	return nil
}

// hold sends requests until the server has all of them, and waits until the gates of the epps hold so many in total. It
// returns the number held by each epp's gates.
func (r *replicas) hold(n int, p *parked, request ask) ([]*pending, []float64) {
	r.t.Helper()
	var all []*pending
	for range n {
		all = append(all, r.begin(request))
	}
	for range n {
		<-p.began
	}
	var held []float64
	expect.Eventually(r.t, fmt.Sprintf("gates hold %d answers", n), func() error {
		held = held[:0]
		total := 0.0
		for _, e := range r.epps {
			select {
			case <-e.Done():
				held = append(held, 0)
				continue
			default:
			}
			held = append(held, e.value("weir_gate_streams"))
			total += held[len(held)-1]
		}
		if total != float64(n) {
			return fmt.Errorf("gates hold %v", held)
		}
		return nil
	})
	return all, held
}

// healthy waits until Envoy uses n epps.
func (r *replicas) healthy(n int64) {
	r.t.Helper()
	const stat = "cluster.weir.membership_healthy"
	expect.Eventually(r.t, stat, func() error {
		stats, err := r.envoy().Stats(context.Background(), stat)
		if err == nil && stats[stat] != n {
			err = fmt.Errorf("%d, want %d", stats[stat], n)
		}
		return err
	})
}

func (r *replicas) wantServed(all []*pending) {
	r.t.Helper()
	for i, p := range all {
		if got := p.wait(); got.status != 200 || !strings.HasSuffix(got.body, parkedRest) {
			r.t.Errorf("request %d: %d %q %v", i, got.status, got.body, got.err)
		}
	}
}

// wantKnown checks that every gate's stream came to the epp with its request.
func (r *replicas) wantKnown(epps ...*epp) {
	r.t.Helper()
	for i, e := range epps {
		if n := e.value("weir_gate_unknown_total"); n != 0 {
			r.t.Errorf("epp %d: %v gates did not find their requests", i, n)
		}
	}
}

// With three epps each gate finds its request. A client cannot choose its epp by one name for all of its requests on a
// connection. With one epp killed, the answers that it held go on, and the others stay held.
func TestGatesAmongReplicas(t *testing.T) {
	t.Parallel()
	p := newParked("")
	r := startReplicas(t, 3, p)
	r.healthy(3)
	const n = 48
	bulk := as("bulk", "a")
	bulk.body = `{"model":"tiny","messages":[],"stream":true}`
	named := bulk
	named.header, named.client = append(slices.Clone(bulk.header), "x-request-id", "mine"), client2
	all, held := r.hold(n, p, named)
	for i := range r.epps {
		if held[i] == 0 {
			t.Errorf("epp %d got none of %d requests: %v", i, n, held)
		}
	}
	for range n {
		p.release <- struct{}{}
	}
	r.wantServed(all)
	r.wantKnown(r.epps...)

	all, held = r.hold(n, p, bulk)
	dead, left := r.epps[2], r.epps[:2]
	dead.kill()
	for i, e := range left {
		e.waitFor(held[i], "weir_gate_streams")
	}
	for range n {
		p.release <- struct{}{}
	}
	r.wantServed(all)
	r.healthy(2)
	more, _ := r.hold(n, p, bulk)
	for range n {
		p.release <- struct{}{}
	}
	r.wantServed(more)
	r.wantKnown(left...)
}
