// Package kube tests Weir in Kubernetes as a black box: the real epp, a real apiserver (internal/kubeenv), and where
// requests matter a real Envoy and simulated model servers. No controller and no kubelet runs there: tests give pods
// their status.
//
// All tests share one apiserver. Each has a namespace of its own there, a world, and epp runs as the service account
// weir of that namespace, with no more rights than the test's Role gives it:
//
//	w := newWorld(t)
//	pods := startEngines(t, modelsim.Fixed(8, 5*time.Millisecond))
//	w.apply(role, strings.ReplaceAll(pool, "number: 8000", fmt.Sprint("number: ", pods.port())))
//	w.pod("first", "127.0.3.1", true)
//	e := w.epp("--pool-name=chat")
//	e.ready(true)
//	envoy := pods.front(e, "127.0.3.1")
//	status, body := ask(t, envoy)
//
// TestLeasesAreReplacedByTheirVersion alone knows a package of Weir's.
//
// Most of a test is waiting, so they run in parallel, but for those that load the machine or bound a time narrowly, which
// run first, one after the other.
//
// The requests that the apiserver got are in w.env.Requests. A test that stops the apiserver starts its own, with
// kubeenv.Start. The definitions are those in charts/weir/crds, or with UPSTREAM_CRDS=DIR the published ones in DIR:
// all tests hold with both.
package kube
