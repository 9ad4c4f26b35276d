package app

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/pki"
)

// admitted reports whether a new client with these certificates gets an answer from the ext_proc port.
func (r *running) admitted(most uint16, certificates ...tls.Certificate) error {
	r.t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", r.Ports().GRPC), grpc.WithTransportCredentials(
		credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MaxVersion: most, Certificates: certificates}))) //nolint:gosec // the server is not the subject
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // of the test
	stream, err := extprocv3.NewExternalProcessorClient(conn).Process(r.t.Context())
	if err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil && err.Error() != "EOF" {
		return err
	}
	return nil
}

// pair issues a client's certificate.
func pair(t *testing.T, a *pki.Authority, edit func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(a.Issue("envoy", edit))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// With --client-ca-file the ext_proc port serves only clients with a certificate of one of its current authorities. The
// file is followed, and a broken one changes nothing. Rejected clients are counted and logged by reason.
func TestClientCertificates(t *testing.T) {
	ours, others, next := pki.NewAuthority(t), pki.NewAuthority(t), pki.NewAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	expect.Replaced(t, file, string(ours.PEM))
	log := &child.Log{}
	o := testOptions()
	o.SecureServing, o.ClientCAFile = true, file
	o.Log, _ = newLogger(log, encoderConsole, 0)
	r := start(t, o)

	good := pair(t, ours, nil)
	if err := r.admitted(0, good); err != nil {
		t.Errorf("a client of the authority: %v", err)
	}
	if err := r.admitted(tls.VersionTLS12, good); err != nil {
		t.Errorf("a client of the authority with TLS 1.2: %v", err)
	}
	for what, certificates := range map[string][]tls.Certificate{
		"no certificate":                nil,
		"another authority's":           {pair(t, others, nil)},
		"one that is over":              {pair(t, ours, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		"one for servers only":          {pair(t, ours, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })},
		"an authority to be used later": {pair(t, next, nil)},
	} {
		if err := r.admitted(0, certificates...); err == nil {
			t.Errorf("%s: admitted", what)
		}
	}
	expect.True(t, "the reasons are counted", func() bool {
		_, text := r.get("/metrics")
		return strings.Contains(text, `weir_tls_handshake_failures_total{reason="no-certificate"} `) &&
			!strings.Contains(text, `{reason="no-certificate"} 0`) && !strings.Contains(text, `{reason="certificate"} 0`)
	})
	for _, want := range []string{"a client without a certificate", "a client with a certificate that is not accepted"} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%q is logged %d times", want, n)
		}
	}

	expect.Replaced(t, file, string(ours.PEM)+string(next.PEM))
	expect.True(t, "the second authority is trusted", func() bool { return r.admitted(0, pair(t, next, nil)) == nil })
	if err := r.admitted(0, good); err != nil {
		t.Errorf("the first authority beside the second: %v", err)
	}
	for what, text := range map[string]string{
		"nothing in it": "", "no PEM": "hello", "a key": keyOf(t, ours), "half a certificate": string(next.PEM) + "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
	} {
		refused := strings.Count(log.String(), "keeping the old authorities")
		expect.Replaced(t, file, text)
		expect.True(t, what+" is refused", func() bool { return strings.Count(log.String(), "keeping the old authorities") > refused })
		if err := r.admitted(0, good); err != nil {
			t.Errorf("%s: the old authorities are not kept: %v", what, err)
		}
		if r.admitted(0) == nil || r.admitted(0, pair(t, others, nil)) == nil {
			t.Errorf("%s: strangers are admitted", what)
		}
	}
	expect.Replaced(t, file, string(next.PEM))
	expect.True(t, "the first authority is trusted no more", func() bool { return r.admitted(0, good) != nil })
	if err := r.admitted(0, pair(t, next, nil)); err != nil {
		t.Errorf("the second authority alone: %v", err)
	}
}

func keyOf(t *testing.T, a *pki.Authority) string {
	t.Helper()
	_, key := a.Issue("key", nil)
	return string(key)
}

// Without usable authorities the program does not start: it would admit no client, or every client.
func TestClientCAMissing(t *testing.T) {
	o := testOptions()
	o.SecureServing, o.ClientCAFile = true, filepath.Join(t.TempDir(), "none")
	if _, err := New(o); problemsIn(err, "--client-ca-file: "+o.ClientCAFile) != nil {
		t.Error(err)
	}
	expect.Replaced(t, o.ClientCAFile, "not PEM\n")
	if _, err := New(o); problemsIn(err, "--client-ca-file: ", "must have at least one certificate") != nil {
		t.Error(err)
	}
}

func TestTLSMinVersion(t *testing.T) {
	for least, want := range map[string]bool{TLS12: true, TLS13: false} {
		o := testOptions()
		o.SecureServing, o.TLSMinVersion, o.MetricsSecureServing = true, least, true
		r := start(t, o)
		if err := r.admitted(tls.VersionTLS12); (err == nil) != want {
			t.Errorf("--tls-min-version=%s: a client with TLS 1.2 at the ext_proc port: %v", least, err)
		}
		if err := r.admitted(tls.VersionTLS13); err != nil {
			t.Errorf("--tls-min-version=%s: a client with TLS 1.3: %v", least, err)
		}
		if _, err := r.overTLS("/metrics", &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); (err == nil) != want { //nolint:gosec // self-signed
			t.Errorf("--tls-min-version=%s: a scraper with TLS 1.2: %v", least, err)
		}
	}
}

// overTLS returns the status of a page of the metrics port over TLS.
func (r *running) overTLS(path string, config *tls.Config) (int, error) {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
	response, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d%s", r.Ports().Metrics, path))
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// The metrics port has its own certificate, which is followed too.
func TestMetricsOverTLS(t *testing.T) {
	first, second := pki.NewAuthority(t), pki.NewAuthority(t)
	dir := t.TempDir()
	write := func(a *pki.Authority) {
		t.Helper()
		certificate, key := a.Issue("weir", nil)
		expect.Replaced(t, filepath.Join(dir, "tls.key"), string(key))
		expect.Replaced(t, filepath.Join(dir, "tls.crt"), string(certificate))
	}
	write(first)
	o := testOptions()
	o.MetricsSecureServing, o.MetricsCertPath = true, dir
	r := start(t, o)
	trusts := func(a *pki.Authority) func() bool {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(a.PEM)
		return func() bool {
			status, err := r.overTLS("/metrics", &tls.Config{RootCAs: pool})
			return err == nil && status == 200
		}
	}
	if !trusts(first)() || trusts(second)() {
		t.Error("the certificate is not that of --metrics-cert-path")
	}
	if status, _ := r.get("/metrics"); status != http.StatusBadRequest {
		t.Errorf("without TLS: status %d", status)
	}
	write(second)
	expect.True(t, "the new certificate is shown", trusts(second))

	o.MetricsCertPath = t.TempDir()
	if _, err := New(o); problemsIn(err, "--metrics-cert-path: ", "tls.crt") != nil {
		t.Error(err)
	}
}

// The limit of messages can only be raised: a message that gRPC refuses would look like a failed processor to Envoy.
func TestGRPCMaxRecvMsgSize(t *testing.T) {
	o := testOptions()
	o.ConfigText = "limits: { maxBodyBytes: 1000000, maxBodyBytesTotal: 2000000, maxHeaderBytes: 65536 }"
	const needed = 2_000_000 + 65_536 + 1<<20
	for size, want := range map[int]int{0: needed, needed: needed, needed + 1: needed + 1} {
		o.GRPCMaxRecvMsgSize = size
		a, err := New(o)
		if err != nil {
			t.Fatalf("%d: %v", size, err)
		}
		if a.receiveLimit != want {
			t.Errorf("%d: the limit is %d, want %d", size, a.receiveLimit, want)
		}
		if err := a.listeners.close(); err != nil {
			t.Fatal(err)
		}
	}
	o.GRPCMaxRecvMsgSize = needed - 1
	if _, err := New(o); problemsIn(err, fmt.Sprintf("--grpc-max-recv-msg-size: %d: must be at least %d", needed-1, needed),
		"limits.maxBodyBytesTotal: 2000000") != nil {
		t.Error(err)
	}
}
