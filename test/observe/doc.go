// Package observe tests the chart's dashboard and alerts with a real Prometheus, which scrapes, once a second, rigs of
// a real Envoy, the real epp and simulated engines. Each rig is healthy at first: no panel has a red value and no alert
// is pending. Then the test makes a panel's fault, and the panel's own query, from the installed file, must have a red
// value for the faulty part and for nothing else.
//
//   - A panel's thresholds are read from its file, as in Grafana, and not repeated here.
//   - Variables of the dashboard are replaced as Grafana does it; $__rate_interval is 10 s.
//   - Alerts are the chart's, rendered by Helm, but wait for one second only.
//   - "An hour ago" is the rigs' scrapes, moved back in time and backfilled by promtool.
//
// Grafana itself draws nothing here.
package observe
