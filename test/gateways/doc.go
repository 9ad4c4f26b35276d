// Package gateways runs what the chart renders for gateways.
//
// Envoy Gateway: helm renders the chart, egctl (Envoy Gateway's own command, hack/tool.sh) translates its objects with
// a Gateway of the tests into configuration of Envoy, and a real Envoy runs that before the real epp, with the
// configuration of the chart's ConfigMap, and engines of the tests. egctl knows no pods: endpoints are replaced by the
// tests' own, and nothing else is. Envoy Gateway itself, which controls Envoys in a cluster, does not run.
//
// The objects for other gateways are checked in test/chart, some by the CustomResourceDefinitions of their modules.
package gateways
