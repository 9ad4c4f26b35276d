package app

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/weir-epp/weir/internal/frontpage"
	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// debugPage is a path of the debug port, with a pattern of http.ServeMux.
type debugPage struct {
	pattern string
	entry   frontpage.Entry
	serve   http.HandlerFunc
	own     bool // it has bounds of its own
}

// debugPages returns all paths of the debug port, in the order of the index.
func (a *App) debugPages() []debugPage {
	get := func(path, about string, serve http.HandlerFunc) debugPage {
		return debugPage{pattern: "GET " + path, entry: frontpage.Entry{Path: path, About: about}, serve: serve}
	}
	front := get("/", "This page.", a.frontPage)
	front.pattern = "GET /{$}" // and no path below
	tail := get("/debug/tail", "Each request that ends from now on, for weir tail. It does not end by itself.", a.tailPage)
	recording := get("/debug/recording", "The last decisions as a file, for weir explain, weir replay and weir simulate.", a.recordingPage)
	tail.own, recording.own = true, true
	pages := []debugPage{
		front,
		get("/debug/status", "The document of this page as JSON, for weir status and weir top.", a.statusDocumentPage),
		get("/statusz", "Configuration, bounds, tiers, names and endpoints as text.", a.statusTextPage),
		get("/debug/flows", "Flows with waiting requests: since when, and for what.", a.flowsPage),
		get("/debug/rejections", fmt.Sprintf("The last %d rejections: the limit, and the flows that hold most of it.", flowcontrol.MostRejections), a.rejectionsPage),
		get("/debug/statistics", "The queue by user and model, with fair shares.", a.statisticsPage),
		tail,
		recording,
		get("/debug/config", "The configuration in use, and the problems of a newer one.", a.configurationPage),
	}
	if a.options.Pprof {
		pages = append(pages, profilePages()...)
	}
	return pages
}

// waysToFront are the paths that lead to the front page, which has the index.
func waysToFront() (pages []debugPage) {
	for _, pattern := range []string{"GET /debug", "GET /debug/{$}"} {
		pages = append(pages, debugPage{pattern: pattern, serve: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/", http.StatusFound)
		}})
	}
	return pages
}

// profilePages are those of --enable-pprof.
func profilePages() (pages []debugPage) {
	for _, p := range []struct {
		path, about string
		serve       http.HandlerFunc
	}{
		{"/debug/pprof/", "Profiles of this process: memory, goroutines, locks.", pprof.Index},
		{"/debug/pprof/cmdline", "The command line of this process.", pprof.Cmdline},
		{"/debug/pprof/profile", "A profile of the processor time of 30 seconds.", pprof.Profile},
		{"/debug/pprof/symbol", "Names of functions by address.", pprof.Symbol},
		{"/debug/pprof/trace", "A trace of the execution of one second.", pprof.Trace},
	} {
		pages = append(pages, debugPage{pattern: p.path, entry: frontpage.Entry{Path: p.path, About: p.about}, serve: p.serve, own: true})
	}
	return pages
}

// configurationPage writes the configuration in use as YAML.
func (a *App) configurationPage(w http.ResponseWriter, _ *http.Request) {
	page, err := a.configuration.page()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(page) // an error: the reader is gone
}

// rejectionsPage writes the last rejections as JSON, the newest first, each with its limit and the flows that hold most of it.
func (a *App) rejectionsPage(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, a.pool.controller.Rejections())
}

// writeJSON writes a page of JSON.
func writeJSON(w http.ResponseWriter, page any) {
	w.Header().Set("Content-Type", "application/json")
	_ = printable.WriteJSON(w, page) // an error: the reader is gone
}

// statusTextPage writes the status as text.
func (a *App) statusTextPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_ = a.statusPage(w, time.Now()) // an error: the reader is gone
}
