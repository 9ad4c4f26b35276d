// Package kube tests Weir in Kubernetes as a black box: the real epp, a real apiserver (internal/kubeenv), and where
// requests matter a real Envoy and simulated model servers. No controller and no kubelet runs there: tests give pods
// their status.
//
// All tests share one apiserver. Each test has its own namespace there, a world; epp runs as the namespace's service
// account weir, with only the rights of the test's Role:
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
// Only TestLeasesAreReplacedByTheirVersion imports a package of Weir's.
//
// A test mostly waits, so tests run in parallel, except that tests that load the machine or bound a time narrowly run
// first, one after the other.
//
// w.env.Requests has the apiserver's requests. A test that stops the apiserver starts its own, with kubeenv.Start. The
// CustomResourceDefinitions are those in charts/weir/crds, or with UPSTREAM_CRDS=DIR the published ones in DIR; all
// tests pass with both.
package kube
