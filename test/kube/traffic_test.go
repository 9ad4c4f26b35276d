package kube

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// front starts an Envoy before e with the recommended configuration. It can reach the engines at these IPs, and no
// others.
func (es *engines) front(e *epp, ips ...string) *envoyrun.Envoy {
	es.t.Helper()
	envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{
		Config: "recommended", Weir: e.Address, ModelServers: es.addresses(ips...),
	})
	if err != nil {
		es.t.Fatal(err)
	}
	es.t.Cleanup(envoy.Kill)
	return envoy
}

// ask sends a request for the model tiny, and returns the status and the body of the answer.
func ask(t *testing.T, envoy *envoyrun.Envoy) (status int, body string) {
	t.Helper()
	a := expect.Post(t.Context(), envoy.URL()+"/v1/completions", `{"model":"tiny","prompt":"Hello"}`)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	return a.Status, a.Body
}

// Envoy sends requests to ready pods: requests for a pod that is no longer ready go to the others, and a new pod gets
// its own.
func TestRequestsFollowPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pods := startEngines(t, modelsim.Fixed(8, 5*time.Millisecond))
	first, second, third := "127.0.3.1", "127.0.3.2", "127.0.3.3"
	w.apply(role, strings.ReplaceAll(pool, "number: 8000", fmt.Sprint("number: ", pods.port())))
	w.pod("first", first, true)
	w.pod("second", second, true)
	e := w.epp("--pool-name=chat")
	e.ready(true)
	envoy := pods.front(e, first, second, third)
	at := func(ip string) string { return fmt.Sprintf("%s:%d", ip, pods.port()) }

	served := func() (counts [3]uint64) {
		for i, ip := range []string{first, second, third} {
			counts[i] = pods.at(ip).Stats().Completed
		}
		return counts
	}
	send := func(n int) {
		t.Helper()
		for range n {
			if status, body := ask(t, envoy); status != http.StatusOK {
				t.Fatalf("answer %d: %s", status, body)
			}
		}
	}
	e.want(at(first), at(second))
	send(20)
	if got := served(); got[0] == 0 || got[1] == 0 || got[0]+got[1] != 20 {
		t.Fatalf("two pods served %v of 20 requests", got)
	}

	w.status("first", first, false)
	e.want(at(first)+" (not ready)", at(second))
	before := served()
	send(10)
	if got := served(); got[0] != before[0] || got[1] != before[1]+10 {
		t.Errorf("with one pod ready: %v, before %v", got, before)
	}

	w.remove("second", 0)
	w.pod("third", third, true)
	e.want(at(first)+" (not ready)", at(third))
	before = served()
	send(10)
	if got := served(); got != [3]uint64{before[0], before[1], before[2] + 10} {
		t.Errorf("with another pod in its place: %v, before %v", got, before)
	}
}
