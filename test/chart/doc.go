// Package chart tests the means to install Weir: the Helm chart (charts/weir) and its equal for kustomize (config/base,
// config/overlays).
//
//   - Rendered: `helm lint`, `helm template` over a matrix of values, and hostile values, which must name their key.
//   - Asked: a real apiserver takes every object, by server-side dry-run with strict field validation; it has the
//     CustomResourceDefinitions of others, too.
//   - Applied: the objects are created in the real apiserver, and epp runs as a local process with the arguments,
//     environment and files of the rendered Deployment and a token of the chart's own service account. Each permission is
//     taken away in turn, and something must fail.
//     With UPSTREAM_CRDS=DIR the cluster has the published CustomResourceDefinitions in DIR, not the chart's.
//   - Beside another: Helm installs the chart beside a release of llm-d's or GIE's picker (test/peers), whose place it takes
//     under load, and gives back.
//   - The alerts: promtool checks and tests them, with what a real epp exports while it suffers from the fault: what is
//     scraped in seconds goes on for as long as the alert asks (TestAlertsAreProvoked has the exceptions).
//
// Work of a kubelet or a controller (probes, rolling updates, load balancing by Services, autoscaling, network
// policies) is rendered only: the schema and the apiserver check it, and nothing carries it out.
package chart
