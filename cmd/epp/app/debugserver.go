package app

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// mostPages is the number of debug pages made or written at a time. A page may read all metrics, so many concurrent
// readers would take gigabytes.
const mostPages = 16

// newDebugServer serves over HTTP the pages that name flows or take processor time: the status, the configuration in
// use, the waiters, and profiles. It has no authentication, and therefore a listener of its own (ADR 0025). Headers
// forbid browsers to guess a page's type or to cache it.
func newDebugServer(a *App) *http.Server {
	mux, places := http.NewServeMux(), make(chan struct{}, mostPages)
	for _, p := range append(a.debugPages(), waysToFront()...) {
		mux.HandleFunc(p.pattern, func(w http.ResponseWriter, r *http.Request) {
			if at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); at != nil && at.IP.IsLoopback() && !namesLoopback(r.Host) {
				http.Error(w, fmt.Sprintf("Host %q: here the debug port answers only to addresses and to localhost", r.Host), http.StatusForbidden)
				return
			}
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cache-Control", "no-store")
			if p.own {
				p.serve(w, r)
				return
			}
			servePage(w, r, p.serve, places)
		})
	}
	return newHTTPServer(mux)
}

// servePage serves a page if one of the slots is free. A stalled reader keeps its slot for at most writeTimeout.
func servePage(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc, places chan struct{}) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	default:
		tryAgain(w, fmt.Sprintf("%d others read pages of this port", mostPages))
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // the server's own writer has deadlines
	serve(w, r)
}

// tryAgain answers a reader beyond a bound. It comes again when a stalled reader has lost its slot.
func tryAgain(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(pieceTimeout.Seconds())))
	http.Error(w, why+": try again", http.StatusServiceUnavailable)
}

// namesLoopback reports whether a Host header has an address, or a name that always means this machine (RFC 6761). Any
// other name may be a website's, resolved to the loopback so that a browser on this machine reads the pages for it (DNS
// rebinding).
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
