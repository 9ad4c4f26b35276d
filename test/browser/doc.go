// Package browser tests the debug port's front page in a real Chromium, named by CHROMIUM (hack/chromium.sh gets one).
// A real epp behind a real Envoy serves the page while tenants share the pool. The tests drive Chromium over pipes by
// its DevTools protocol. TestScreenshot also makes the picture of docs/status.md (make screenshot).
package browser
