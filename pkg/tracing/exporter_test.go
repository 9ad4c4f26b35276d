package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // the server's
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weir-epp/weir/internal/pki"
)

// got is what a collector has seen of an export.
type got struct {
	mu                          sync.Mutex
	path, tenant, encoding, who string
}

func (g *got) set(path, tenant, encoding string, state *tls.ConnectionState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.path, g.tenant, g.encoding = path, tenant, encoding
	if state != nil && len(state.PeerCertificates) > 0 {
		g.who = state.PeerCertificates[0].Subject.CommonName
	}
}

// TagRPC, HandleRPC, TagConn and HandleConn implement stats.Handler.
func (g *got) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC notes the headers of a request.
func (g *got) HandleRPC(_ context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.InHeader); ok {
		tenant := ""
		if values := h.Header.Get("x-tenant"); len(values) > 0 {
			tenant = values[0]
		}
		g.set(h.FullMethod, tenant, h.Compression, nil)
	}
}

func (g *got) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (g *got) HandleConn(context.Context, stats.ConnStats)                       {}

// grpcCollector takes everything by gRPC, over TLS unless secure is nil.
func grpcCollector(t *testing.T, g *got, secure *tls.Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := []grpc.ServerOption{grpc.StatsHandler(g), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return stream.SendMsg(&emptypb.Empty{})
	})}
	if secure != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	s := grpc.NewServer(options...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	return l.Addr().String()
}

// httpCollector takes everything by HTTP, over TLS unless secure is nil.
func httpCollector(t *testing.T, g *got, secure *tls.Config) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		g.set(r.URL.Path, r.Header.Get("x-tenant"), r.Header.Get("Content-Encoding"), r.TLS)
	}))
	if s.TLS = secure; secure != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// Both protocols reach a collector as the variables say: with the headers, compressed, and over TLS with the certificates.
func TestExporters(t *testing.T) {
	authority := pki.NewAuthority(t)
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	crt, key := authority.Issue("weir", nil)
	client, clientKey, ca := write("tls.crt", crt), write("tls.key", key), write("ca.crt", authority.PEM)
	serverCrt, serverKey := authority.Issue("collector", nil)
	pair, err := tls.X509KeyPair(serverCrt, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM)
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	for _, test := range []struct {
		protocol, path, compression, want string
		collector                         func(*testing.T, *got, *tls.Config) string
		secure                            *tls.Config
	}{
		{GRPC, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "", "", grpcCollector, nil},
		{GRPC, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "gzip", "gzip", grpcCollector, secure},
		{HTTP, "/v1/traces", "none", "", httpCollector, nil},
		{HTTP, "/v1/traces", "gzip", "gzip", httpCollector, secure},
	} {
		g := &got{}
		scheme := "http://"
		variables := map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": test.protocol, "OTEL_EXPORTER_OTLP_COMPRESSION": test.compression, "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=a%20b",
			"OTEL_EXPORTER_OTLP_CERTIFICATE":        ca, // of no use to a plaintext collector, and no harm
			"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": client, "OTEL_EXPORTER_OTLP_CLIENT_KEY": clientKey,
		}
		if test.secure != nil {
			scheme = "https://"
		}
		variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = scheme + test.collector(t, g, test.secure.Clone())
		cfg, err := reading(variables)
		if err != nil {
			t.Fatal(err)
		}
		tracer := New(*cfg, NewExporter(cfg), logr.Discard())
		tracer.Ended(served())
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := tracer.Run(ctx); err != nil {
			t.Errorf("%s %s: %v", test.protocol, scheme, err)
		}
		if n := testutil.ToFloat64(tracer.queue.exported); n != 2 {
			t.Errorf("%s %s: %v spans exported", test.protocol, scheme, n)
		}
		g.mu.Lock()
		if g.path != test.path || g.tenant != "a b" || g.encoding != test.want || test.protocol == HTTP && test.secure != nil && g.who != "weir" {
			t.Errorf("%s %s: the collector got path %q, tenant %q, encoding %q, from %q", test.protocol, scheme, g.path, g.tenant, g.encoding, g.who)
		}
		g.mu.Unlock()
	}
}
