//go:build upgrade

package chart

import (
	"errors"
	"flag"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
)

// earlier is a directory with an earlier version: its program epp, and its source in the directory src.
var earlier = flag.String("upgrade.from", "", "directory of the earlier version, which hack/earlier.sh makes")

// Helm upgrades an earlier version to this one under load, pod by pod like a Deployment, and rolls it back, behind the
// Envoy of either: the chart replaces that one too, sooner or later than Weir. Replicas of both versions share the
// Lease and the records. One leads at a time, except during a handover. Either leader counts the other's requests in
// flight, so the stock exceeds the band by at most the dispatches of a retry period. No request fails, none bypasses
// Weir behind the present chart's Envoy, and the Service always leads to a replica. The earlier chart's Envoy knew
// leaders only: until its health check has seen the next one, requests bypass Weir.
func TestUpgradeFromAnEarlierVersion(t *testing.T) {
	for envoy, past := range map[string]time.Duration{"earlier": healthCheck, "present": 0} {
		t.Run("behind the Envoy of the "+envoy+" chart", func(t *testing.T) {
			newRollOut(t, envoy == "earlier", past).there().andBack()
		})
	}
}

// rollOut is an upgrade and a rollback under load.
type rollOut struct {
	t       *testing.T
	u       *upgrade
	h       *handover
	values  string
	earlier objects // of the earlier chart
	names   *nameServer

	mu           sync.Mutex
	running      []*deployed // replicas that have started and got no signal to end
	nobody, both span        // while no replica was ready, and several were
	mayPass      time.Duration
	passed       int64 // requests that bypassed Weir, and of them those before the last settled
	counted      int64
	passing      [2]time.Time // times of the first and the last bypass
}

// span is the longest duration of a condition.
type span struct {
	since   time.Time
	longest time.Duration
}

func (s *span) is(so bool, now time.Time) {
	switch {
	case !so:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = now
	default:
		s.longest = max(s.longest, now.Sub(s.since))
	}
}

// newRollOut has two replicas of the earlier version, and load through an Envoy.
func newRollOut(t *testing.T, envoyIsEarlier bool, mayPass time.Duration) *rollOut {
	t.Helper()
	if *earlier == "" {
		t.Fatal("there is no earlier version: make upgrade makes one, and names it by -upgrade.from")
	}
	env := cluster(t)
	ns := env.Namespace(t)
	r := &rollOut{
		t: t, mayPass: mayPass, h: &handover{t: t, env: env, ns: ns}, u: &upgrade{t: t, env: env, ns: ns, kubeconfig: env.Kubeconfig(t, env.Admin(), ns)},
	}
	r.values = "envoy: { mode: standalone }\n" + r.h.startEngine()
	chart := filepath.Join(*earlier, "src", "charts", "weir")
	values := files(t, []string{r.values})
	text, err := run(t, tool(t, "helm"), append([]string{"template", release, chart, "--namespace", namespace}, values...)...)
	if err != nil {
		t.Fatal(err)
	}
	r.earlier, r.h.all = parse(t, text), render(t, r.values)
	if envoyIsEarlier {
		r.h.all = r.earlier
	}
	r.u.helm(append([]string{"install", release, chart}, values...)...)
	modelServer(t, env, ns, "engine-0", "other: x")
	r.names = startNameServer(t, "llama-weir-replicas")
	r.u.service = watchService(t, env, ns, "llama-weir")
	r.h.first = r.start("earlier", "127.0.9.1")
	r.h.first.await("the first replica leads", r.h.first.serving("readiness"))
	r.h.second = r.start("earlier", "127.0.9.2")
	r.u.leadsTo(podIP(r.h.first.ip))
	r.u.service.counts()
	r.h.front(func(rendered, b envoyrun.Bootstrap) {
		for _, name := range []string{envoyrun.WeirCluster, "weir_leader", "weir_replicas"} {
			if cluster := b.Cluster(name); rendered.Cluster(name)["type"] == "STRICT_DNS" {
				maps.Copy(cluster, rendered.Cluster(name)) // as rendered: by name, with TLS
				cluster["typed_dns_resolver_config"] = r.names.resolver()
			}
		}
	})
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				r.look()
			}
		}
	})
	t.Cleanup(func() { close(stop); looking.Wait() })
	return r
}

// look counts the ready replicas.
func (r *rollOut) look() {
	r.mu.Lock()
	running := slices.Clone(r.running)
	r.mu.Unlock()
	ready := 0
	for _, d := range running {
		if healthOf(d.host(), 9003, "readiness") {
			ready++
		}
	}
	passed, _ := r.h.passedYet() // 0 without Envoy's answer
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if passed > r.passed {
		if r.passing[0].IsZero() {
			r.passing[0] = now
		}
		r.passed, r.passing[1] = passed, now
	}
	r.nobody.is(ready == 0, now)
	r.both.is(ready > 1, now)
}

// runs records the running replicas, and those in DNS.
func (r *rollOut) runs(running, known []*deployed) {
	r.mu.Lock()
	r.running = running
	r.mu.Unlock()
	var ips []string
	for _, d := range known {
		ips = append(ips, d.ip)
	}
	r.names.set(ips...)
}

// start starts a replica of a version like a Deployment, and returns when the kubelet would call it ready.
func (r *rollOut) start(version, ip string) *deployed {
	r.t.Helper()
	binary, all := binaries.Path(binaries.EPP), render(r.t, r.values)
	if version == "earlier" {
		binary, all = filepath.Join(*earlier, "epp"), r.earlier
	}
	d := replicaOf(r.t, binary, r.u.env, r.u.ns, all, r.u.env.Admin().Host, ip)
	running := append(slices.Clone(r.running), d)
	r.runs(running, running)
	d.await("the replica has synced", d.serving("synced"))
	r.u.ready(d.pod, podIP(ip))
	return d
}

// end ends a replica like a Deployment, and returns after its end. It leaves DNS at once.
func (r *rollOut) end(d *deployed) {
	r.t.Helper()
	grace := int64(60)
	pods := r.u.env.Clients().CoreV1().Pods(r.u.ns)
	if err := pods.Delete(r.t.Context(), d.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		r.t.Fatal(err)
	}
	begun := time.Now()
	if err := d.process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	rest := slices.DeleteFunc(slices.Clone(r.running), func(other *deployed) bool { return other == d })
	r.runs(r.running, rest)
	for !d.process.Ended() {
		if time.Since(begun) > 90*time.Second {
			r.t.Fatal("the replica does not end")
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.runs(rest, rest)
	r.t.Logf("the replica at %s had ended %v after SIGTERM", d.ip, time.Since(begun).Round(10*time.Millisecond))
	r.u.gone(d.pod.Name)
}

// there upgrades: each new replica is ready before an old one ends.
func (r *rollOut) there() *rollOut {
	r.t.Helper()
	r.u.presentWith(r.values)
	begun := time.Now()
	first := r.start("present", "127.0.9.3")
	first.await("the first new replica leads", first.serving("readiness"))
	r.t.Logf("a new replica led %v after its start", time.Since(begun).Round(10*time.Millisecond))
	time.Sleep(handoverRetry + time.Second) // the kubelet asks; meanwhile the last leader reads who leads
	r.end(r.h.first)
	second := r.start("present", "127.0.9.4")
	r.end(r.h.second)
	r.h.first, r.h.second = first, second
	r.settled("the upgrade", 0)
	if leads := r.u.service.leadsTo(); !slices.Equal(leads, []string{podIP(first.ip)}) {
		r.t.Errorf("after the upgrade the Service leads to %v", leads)
	}
	r.u.presentWith(r.values) // the selector is removed
	r.settled("the second upgrade", 0)
	return r
}

// andBack rolls back by docs/upgrade.md.
func (r *rollOut) andBack() {
	r.t.Helper()
	r.u.label(r.h.first.pod.Name)
	r.u.helm("rollback", release, "1")
	first := r.start("earlier", "127.0.9.5")
	r.end(r.h.second)
	second := r.start("earlier", "127.0.9.6")
	r.end(r.h.first)
	leader, _ := r.leads(first, second)
	r.u.leadsTo(podIP(leader.ip))
	r.settled("the rollback", 3*time.Second)
}

// leads waits until one of two replicas leads, and returns that one first.
func (r *rollOut) leads(a, b *deployed) (leader, other *deployed) {
	r.t.Helper()
	a.await("one of the two replicas leads", func() error {
		for _, d := range []*deployed{a, b} {
			if healthOf(d.host(), 9003, "readiness") {
				leader = d
				return nil
			}
		}
		return errors.New("neither is SERVING")
	})
	if leader == b {
		return b, a
	}
	return a, b
}

// settled checks the events since its last call. The Service may have led nowhere for the given time.
func (r *rollOut) settled(when string, empty time.Duration) {
	r.t.Helper()
	time.Sleep(handoverService)
	r.mu.Lock()
	nobody, both, passed, past := r.nobody.longest, r.both.longest, r.passed-r.counted, r.passing[1].Sub(r.passing[0])
	r.nobody.longest, r.both.longest, r.counted, r.passing = 0, 0, r.passed, [2]time.Time{}
	r.mu.Unlock()
	failed, most := r.h.failed.Load(), mostAtOnce(r.h.engine.Records())
	r.t.Logf("%s: no replica was ready for %v, several for %v; %d requests bypassed Weir, within %v, and %d failed; at most %d ran at once, the bound is %d",
		when, nobody.Round(10*time.Millisecond), both.Round(10*time.Millisecond), passed, past.Round(10*time.Millisecond), failed, most, handoverBound)
	if failed != 0 || past > r.mayPass || passed != 0 && r.mayPass == 0 {
		r.t.Errorf("%s: %d requests failed, and %d went past Weir within %v, which they may for %v", when, failed, passed, past, r.mayPass)
	}
	if dispatched := int(handoverRetry * handoverBound / handoverService); most > handoverBound+dispatched {
		r.t.Errorf("%s: %d requests ran at once, want at most the bound, %d, and the %d of a retry period", when, most, handoverBound, dispatched)
	}
	r.u.neverEmpty(empty, when)
}
