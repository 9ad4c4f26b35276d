// Package chart tests the installation of Weir: the Helm chart (charts/weir) and the equivalent kustomize files
// (config/base, config/overlays).
//
//   - Rendered: `helm lint`, `helm template` over a matrix of values, and hostile values, which must name their key.
//   - Asked: a real apiserver, which also has other projects' CustomResourceDefinitions, accepts every object in a
//     server-side dry-run with strict field validation.
//   - Applied: the objects are created in the real apiserver, and epp runs as a local process with the arguments,
//     environment and files of the rendered Deployment and a token of the chart's own service account. Each permission is
//     taken away in turn, and something must fail.
//     With UPSTREAM_CRDS=DIR the cluster has the published CustomResourceDefinitions in DIR, not the chart's.
//   - Beside another: Helm installs the chart beside a release of llm-d's or GIE's picker (test/peers). Weir replaces
//     the picker under load, and the picker then replaces Weir.
//   - The alerts: promtool checks and tests them with the metrics of a real epp during the fault. Metrics scraped for
//     seconds are extended to the duration of the alert (TestAlertsAreProvoked has the exceptions).
//
// Objects for a kubelet or a controller (probes, rolling updates, load balancing by Services, autoscaling, network
// policies) are only rendered, and checked by the schema and the apiserver: nothing carries them out.
package chart
