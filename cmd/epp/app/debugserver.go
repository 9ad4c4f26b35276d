package app

import "net/http"

// newDebugServer serves over HTTP the pages that name flows or take processor time: the status, the configuration in use, the
// waiters, and profiles. It has no authentication, and therefore a listener of its own (ADR 0025). Browsers take each page for
// what it says it is, and keep none.
func newDebugServer(a *App) *http.Server {
	mux := http.NewServeMux()
	for _, p := range a.debugPages() {
		mux.HandleFunc(p.pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cache-Control", "no-store")
			p.serve(w, r)
		})
	}
	return newHTTPServer(mux)
}
