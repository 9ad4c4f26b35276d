package kube

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// Pods are not probed without a path, since the kubelet probes them. With a path Weir probes in the protocol of the
// pool.
func TestProbesOfPods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, protocol string
		proto          int // the version of HTTP
	}{{"HTTP/1.1", "http", 1}, {"h2c", "kubernetes.io/h2c", 2}} {
		t.Run(c.name, func(t *testing.T) {
			var probes atomic.Int64
			var healthy atomic.Bool
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{ //nolint:gosec // its only client is Weir
				Protocols: new(http.Protocols),
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					probes.Add(1)
					if r.URL.Path != "/ready" || !healthy.Load() {
						w.WriteHeader(http.StatusServiceUnavailable)
					}
				}),
			}
			server.Protocols.SetHTTP1(c.proto == 1) // and nothing else
			server.Protocols.SetUnencryptedHTTP2(c.proto == 2)
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(func() { _ = server.Close() })
			port := listener.Addr().(*net.TCPAddr).Port
			at := fmt.Sprintf("127.0.0.1:%d", port)

			w := newWorld(t)
			w.apply(role, strings.ReplaceAll(pool, "  targetPorts: [{number: 8000}]",
				fmt.Sprintf("  appProtocol: %s\n  targetPorts: [{number: %d}]", c.protocol, port)))
			w.pod("a", "127.0.0.1", true)
			plain := w.epp("--pool-name=chat")
			plain.want(at)
			if n := probes.Load(); n > 0 {
				t.Errorf("%d probes without --probe-path", n)
			}
			probing := w.epp("--pool-name=chat", "--probe-path=/ready", "--probe-interval=100ms")
			probing.want(at + " (not ready)")
			healthy.Store(true)
			probing.want(at)
			w.status("a", "127.0.0.1", false)
			probing.want(at + " (not ready)")
		})
	}
}
