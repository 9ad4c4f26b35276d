// Package observe holds the dashboard and the alerts of the chart to what a real Prometheus makes of them. It scrapes, once
// a second, rigs of a real Envoy, the real epp and simulated engines. In each rig nothing is wrong at first: no panel has a
// red value and no alert is pending. Then the test makes the fault that a panel's question is about, and the panel's own
// query, from the file that the chart installs, must have a red value for what the fault is of, and for nothing else.
//
//   - A panel's thresholds are those of its file, which Grafana draws: nothing of them is repeated here.
//   - Variables of the dashboard are replaced as Grafana does it; $__rate_interval is 10 s.
//   - Alerts are the chart's, rendered by Helm, but wait for one second only.
//   - "An hour ago" is made of the rigs' scrapes, moved back in time and backfilled by promtool.
//
// Grafana itself draws nothing here.
package observe
