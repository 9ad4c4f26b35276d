// Package gateways runs the chart's objects for gateways.
//
// Envoy Gateway: helm renders the chart, and egctl (Envoy Gateway's own command, hack/tool.sh) translates its objects
// and a Gateway of the tests to Envoy's configuration. A real Envoy runs it before the real epp, which has the
// configuration of the chart's ConfigMap, and the tests' engines. egctl knows no pods, so the tests put their own
// endpoints in, and change nothing else. Envoy Gateway itself, which controls Envoys in a cluster, does not run.
//
// test/chart checks the objects for other gateways, some by the CustomResourceDefinitions of their modules.
package gateways
