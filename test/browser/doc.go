// Package browser looks at the debug port's front page with a real Chromium, which CHROMIUM names (hack/chromium.sh gets
// one): a page that a real epp behind a real Envoy serves while tenants share it. Chromium is driven over pipes in its
// DevTools protocol. TestScreenshot also makes the picture of docs/status.md (make screenshot).
package browser
