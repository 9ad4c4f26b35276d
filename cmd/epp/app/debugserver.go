package app

import (
	"bytes"
	"net/http"
	"net/http/pprof"
	"time"
)

// newDebugServer serves over HTTP the pages that name flows or take processor time: the status page, the configuration
// in use, the waiters, and profiles. It has no authentication, and therefore a listener of its own (ADR 0025).
func newDebugServer(a *App) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/config", func(w http.ResponseWriter, _ *http.Request) {
		page, err := a.configuration.page()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(page)
	})
	mux.HandleFunc("GET /statusz", func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		if err := a.statusPage(&page, time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = page.WriteTo(w)
	})
	mux.HandleFunc("GET /debug/status", a.statusDocumentPage)
	mux.HandleFunc("GET /debug/tail", a.tailPage)
	mux.HandleFunc("GET /debug/flows", a.flowsPage)
	mux.HandleFunc("GET /debug/statistics", a.statisticsPage)
	mux.HandleFunc("GET /debug/rejections", a.rejectionsPage)
	mux.HandleFunc("GET /debug/recording", a.recordingPage)
	if a.options.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return newHTTPServer(mux)
}
