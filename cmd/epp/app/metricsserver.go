package app

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds on clients of the HTTP ports: silent connections before, within and after a request, unread answers, and the
// memory of concurrent scrapes.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	writeTimeout      = 30 * time.Second // not for profiles, the tail and the recording, which take longer
	maxScrapes        = 16
)

// newMetricsServer serves only metrics and health over HTTP: this port is open to scrapers and probes.
func newMetricsServer(a *App) (*http.Server, error) {
	mux := http.NewServeMux()
	gatherer := a.gatherer()
	if a.options.MetricAliases {
		gatherer = aliased(gatherer)
	}
	metrics := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{
		Registry: a.registry, EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes,
	})
	if a.options.metricsAuth() {
		var err error
		if metrics, err = authorized(&a.options, metrics, a.log.WithName("metrics")); err != nil {
			return nil, err
		}
	}
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if lacks := a.readiness.lacks(); lacks != "" {
			http.Error(w, "not ready: "+lacks, http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	server := newHTTPServer(mux)
	server.WriteTimeout = writeTimeout
	if o := &a.options; o.MetricsSecureServing {
		cert, err := newCertificate(o.MetricsCertPath, "metrics-secure-serving", "metrics-cert-path", a.log.WithName("certificate"))
		if err != nil {
			return nil, err
		}
		a.followed = append(a.followed, cert.follow)
		server.TLSConfig = serverTLS(cert, o.spoken(), nil)
		server.ErrorLog = log.New(io.Discard, "", 0) // it would log each failed handshake of a stranger
	}
	return server, nil
}

// newHTTPServer returns a server with timeouts for all that a client can hold.
func newHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
	}
}

// serveHTTP serves until the server is closed, over TLS if the server has a configuration for it.
func serveHTTP(server *http.Server, listener net.Listener, what string) error {
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("app: serving %s: %w", what, err)
	}
	return nil
}
