package app

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// newDebugServer serves over HTTP the pages that name flows or take processor time: the status, the configuration in use, the
// waiters, and profiles. It has no authentication, and therefore a listener of its own (ADR 0025). Browsers take each page for
// what it says it is, and keep none.
func newDebugServer(a *App) *http.Server {
	mux := http.NewServeMux()
	for _, p := range a.debugPages() {
		mux.HandleFunc(p.pattern, func(w http.ResponseWriter, r *http.Request) {
			if at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); at != nil && at.IP.IsLoopback() && !namesLoopback(r.Host) {
				http.Error(w, fmt.Sprintf("Host %q: here the debug port answers only to addresses and to localhost", r.Host), http.StatusForbidden)
				return
			}
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cache-Control", "no-store")
			p.serve(w, r)
		})
	}
	return newHTTPServer(mux)
}

// namesLoopback reports whether a Host header has an address, or a name that is always of this machine (RFC 6761). Any other
// name may be that of a website, made to resolve to the loopback so that a browser on this machine reads the pages for it (DNS
// rebinding).
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
