// Package kubeenv runs a real Kubernetes API for tests: etcd and kube-apiserver, with RBAC, service accounts and their
// tokens, default admission, and an audit log from which tests learn the requests to the apiserver. Nothing else of a
// cluster runs: no controller and no kubelet. Pods have the status that tests give them, a deleted pod with a node
// stays until it is deleted with a grace period of 0, and a namespace never ends.
//
// The environment starts in some seconds, so the tests of a package share one, each in a namespace of its own:
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
// Tests that stop the apiserver take their own with [Start].
//
// Invariants:
//
//   - Everything listens on 127.0.0.1, at a port that the system chose and that stays reserved while the apiserver is
//     stopped, or on sockets in the environment's directory.
//   - No process outlives the test process, however that ends (on Linux, by internal/child).
//   - Nothing is faked: an environment answers as a cluster with the same objects would.
package kubeenv
