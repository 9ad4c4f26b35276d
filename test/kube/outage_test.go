package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// The apiserver is away for 30 s. Weir keeps using its knowledge, and a gauge shows the outage. It has all changes
// within 30 s of the apiserver's return.
func TestTheApiserverIsAway(t *testing.T) {
	t.Parallel()
	env := kubeenv.Start(t) // its own apiserver, since others' must not end
	env.InstallCRDs(t, crds())
	w := &world{t: t, env: env, namespace: env.Namespace(t)}
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	w.pod("b", "10.0.0.2", true)
	e := w.epp("--pool-name=chat")
	e.ready(true)
	e.want("10.0.0.1:8000", "10.0.0.2:8000")
	const up = `weir_kubernetes_apiserver_up{pool="chat"}`
	e.wantMetric(up, 1)

	env.StopAPIServer(t)
	e.wantMetric(up, 0)
	e.logs("THE APISERVER DOES NOT ANSWER")
	for away := time.Now(); time.Since(away) < 30*time.Second; time.Sleep(500 * time.Millisecond) {
		r := e.send("chat")
		if at := r.granted(t); !strings.HasPrefix(at, "10.0.0.") {
			t.Fatal(at)
		}
		r.end()
		if !e.serving("readiness") || !e.serving("liveness") {
			t.Fatal("not ready while the apiserver is away")
		}
	}
	env.StartAPIServer(t)
	back := time.Now()
	w.remove("a", 0)
	w.remove("b", 0)
	w.pod("b", "10.0.0.4", true) // another one of the name
	w.pod("c", "10.0.0.3", true)
	e.want("10.0.0.3:8000", "10.0.0.4:8000")
	if took := time.Since(back); took > 30*time.Second {
		t.Errorf("caught up after %s", took)
	} else {
		t.Logf("caught up after %s", took)
	}
	e.wantMetric(up, 1)
	e.logs("the apiserver answers again")
}

// Weir starts while the apiserver is away, and then with one that does not know InferencePools. It is alive and not
// ready, until the apiserver is there with their definition.
func TestStartWithoutTheApiserver(t *testing.T) {
	t.Parallel()
	env := kubeenv.Start(t)
	w := &world{t: t, env: env, namespace: env.Namespace(t)}
	w.apply(role)
	w.pod("a", "10.0.0.1", true)
	config := env.Kubeconfig(t, env.As(t, w.namespace, "weir"), w.namespace)
	env.StopAPIServer(t)
	e := w.eppWith(config, "--pool-name=chat")
	e.wantMetric(`weir_kubernetes_apiserver_up{pool="chat"}`, 0)
	e.ready(false)
	env.StartAPIServer(t)
	e.logs("cannot follow this kind of object yet")
	e.wantMetric(`weir_kubernetes_apiserver_up{pool="chat"}`, 1)
	e.wantMetric(`weir_pool_missing{pool="chat"}`, 1)
	e.ready(false)
	page, err := expect.Read(e.page)
	if err != nil {
		t.Fatal(err)
	}
	_, waits, _ := strings.Cut(page, "\nwaits for ")
	if waits, _, _ = strings.Cut(waits, "\n"); !strings.Contains(waits, "InferencePool") || !strings.Contains(waits, "pods") {
		t.Errorf("the status page has the wait for %q", waits)
	}
	env.InstallCRDs(t, crds())
	w.apply(pool)
	e.ready(true)
	e.want("10.0.0.1:8000")
}

// Without one verb Weir stays up and not ready, and names the missing permission, until it has it.
func TestOneVerbShort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ resource, verb, has string }{
		{"pods", "list", "watch"},
		{"pods", "watch", "list"},
		{"inferencepools.inference.networking.k8s.io", "list", "watch"},
		{"inferencepools.inference.networking.k8s.io", "watch", "list"},
	} {
		t.Run(c.verb+" "+c.resource, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			resource, _, _ := strings.Cut(c.resource, ".")
			w.apply(strings.ReplaceAll(role, "["+resource+"], verbs: [list, watch]", "["+resource+"], verbs: ["+c.has+"]"), pool)
			w.pod("a", "10.0.0.1", true)
			e := w.epp("--pool-name=chat")
			lacks := func(verb string) string {
				return fmt.Sprintf(`weir_kubernetes_permission_missing{namespace=%q,pool="chat",resource=%q,verb=%q}`,
					w.namespace, c.resource, verb)
			}
			e.wantMetric(lacks(c.verb), 1)
			e.wantMetric(lacks(c.has), 0)
			e.ready(false)
			e.logs(fmt.Sprintf(`"verb":%q,"resource":%q,"namespace":%q`, c.verb, c.resource, w.namespace))
			w.apply(role)
			e.ready(true)
			e.wantMetric(lacks(c.verb), 0)
			e.want("10.0.0.1:8000")
		})
	}
}

// Without the permission to write Events everything works, and the log has their texts.
func TestWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(strings.ReplaceAll(role, "- {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}\n", ""), pool)
	w.pod("a", "10.0.0.1", true, annotated("weir.dev/slots", "lots"))
	e := w.epp("--pool-name=chat")
	e.ready(true)
	e.wantMetric(fmt.Sprintf(
		`weir_kubernetes_permission_missing{namespace=%q,pool="chat",resource="events.events.k8s.io",verb="create"}`, w.namespace), 1)
	e.logs(`weir.dev/slots]: \"lots\"`)
}

// The apiserver is away for 30 s, twice the Lease's duration. The leader stays ready, and the follower not ready,
// requests are served, and afterwards the roles are the same.
func TestTheApiserverIsAwayInLeaderMode(t *testing.T) {
	t.Parallel()
	env := kubeenv.Start(t)
	env.InstallCRDs(t, crds())
	w := &world{t: t, env: env, namespace: env.Namespace(t)}
	w.apply(role, electing, pool)
	w.pod("a", "10.0.0.1", true)
	leader := w.replica("weir-0", "--ha-enable-leader-election")
	leader.leads(w)
	follower := w.replica("weir-1", "--ha-enable-leader-election")
	follower.follows(w)
	env.StopAPIServer(t)
	for away := time.Now(); time.Since(away) < 30*time.Second; time.Sleep(250 * time.Millisecond) {
		r := leader.send("chat")
		r.granted(t)
		r.end()
		if !leader.serving("readiness") || follower.serving("readiness") || !follower.serving("synced") {
			t.Fatalf("%v into the outage: the leader is ready: %t, the follower: %t (synced: %t)", time.Since(away),
				leader.serving("readiness"), follower.serving("readiness"), follower.serving("synced"))
		}
	}
	env.StartAPIServer(t)
	leader.logs("the Lease of the leader can be read and written again")
	time.Sleep(5 * time.Second)
	leader.leads(w)
	follower.follows(w)
	if strings.Contains(leader.Log.String(), "this one follows") {
		t.Error("the leader followed for a while")
	}
}
