package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/health"

	"github.com/weir-epp/weir/internal/memnet"
)

// metricsPort serves the metrics' port in a bubble, and returns a function that connects to it.
func metricsPort(t *testing.T) (connect func() net.Conn) {
	t.Helper()
	a := &App{registry: prometheus.NewRegistry(), readiness: newReadiness(health.NewServer())}
	many := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "many", Help: "More than a writer buffers."}, []string{"n"})
	for i := range 1000 {
		many.WithLabelValues(fmt.Sprint(i)).Set(1)
	}
	a.registry.MustRegister(many)
	server, err := newMetricsServer(a)
	if err != nil {
		t.Fatal(err)
	}
	listener := memnet.Listen()
	done := make(chan error, 1)
	go func() { done <- serveHTTP(server, listener, "metrics") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func() net.Conn {
		conn, err := listener.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

func ask(t *testing.T, conn net.Conn, path string) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: weir\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// answer reads a whole answer.
func answer(t *testing.T, conn net.Conn) (status int) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// An idle connection ends.
func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := metricsPort(t)()
		ask(t, conn, "/healthz")
		if status := answer(t, conn); status != http.StatusOK {
			t.Fatal(status)
		}
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("it sends more")
		}
		if idle := time.Since(began); idle != idleTimeout {
			t.Errorf("it ended after %s, want %s", idle, idleTimeout)
		}
	})
}

// Scrapers that do not read take bounded memory for a bounded time. The health page answers meanwhile.
func TestScrapersThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := metricsPort(t)
		for range maxScrapes {
			ask(t, connect(), "/metrics")
		}
		synctest.Wait()
		status := func(path string) int {
			conn := connect()
			ask(t, conn, path)
			return answer(t, conn)
		}
		if got := status("/metrics"); got != http.StatusServiceUnavailable {
			t.Errorf("one more scraper gets %d", got)
		}
		if got := status("/healthz"); got != http.StatusOK {
			t.Errorf("health is %d", got)
		}
		time.Sleep(writeTimeout)
		synctest.Wait()
		if got := status("/metrics"); got != http.StatusOK {
			t.Errorf("after %s the next scraper gets %d", writeTimeout, got)
		}
	})
}
