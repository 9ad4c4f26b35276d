// Package kubeenv runs a real Kubernetes API for tests: etcd and kube-apiserver, with RBAC, service accounts and their
// tokens, default admission, and an audit log of the requests to the apiserver. No controller and no kubelet runs. So
// tests set the status of pods, a deleted pod with a node stays until it is deleted with a grace period of 0, and a
// namespace never ends.
//
// The environment takes some seconds to start, so the tests of a package share one, each in its own namespace:
//
//	func TestMain(m *testing.M) { os.Exit(kubeenv.Run(m.Run)) }
//
//	func TestFollowsPods(t *testing.T) {
//		env := kubeenv.Shared(t)
//		namespace := env.Namespace(t)
//		env.Apply(t, namespace, manifest)
//		…
//	}
//
// Tests that stop the apiserver start their own environment with [Start].
//
// Invariants:
//
//   - Everything listens on 127.0.0.1, at a port chosen by the system and reserved even while the apiserver is stopped,
//     or on sockets in the environment's directory.
//   - No process outlives the test process, even a killed one (on Linux, by internal/child).
//   - Nothing is faked: an environment answers as a cluster with the same objects would.
package kubeenv
