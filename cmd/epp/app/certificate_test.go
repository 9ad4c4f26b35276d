package app

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/expect"
)

// writePair writes a new pair into dir as a mounted Secret does: a fresh folder behind a swapped symbolic link.
func writePair(t *testing.T, dir, generation string) (serial string) {
	t.Helper()
	pair, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, generation)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "tls.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(fresh, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // only the first time
	}
	if err := os.Symlink(generation, filepath.Join(dir, "..new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.String()
}

// shown returns the serial number of the certificate that the server presents to a new connection.
func (r *running) shown() string {
	r.t.Helper()
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.Ports().GRPC),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // self-signed
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // of the test
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// A renewed mounted Secret takes effect. A broken one keeps the old certificate.
func TestCertificateReload(t *testing.T) {
	dir := t.TempDir()
	first := writePair(t, dir, "1")
	o := testOptions()
	o.SecureServing, o.CertPath = true, dir
	log := &child.Log{}
	o.Log, _ = newLogger(log, encoderConsole, 0)
	r := start(t, o)
	if got := r.shown(); got != first {
		t.Errorf("shown %s, want %s", got, first)
	}
	second := writePair(t, dir, "2")
	expect.True(t, "the new certificate is shown", func() bool { return r.shown() == second })

	// The log shows that the unusable pair was read. The server still presents the old certificate, with its own key:
	// otherwise no connection would succeed.
	elsewhere := t.TempDir()
	writePair(t, elsewhere, "other")
	other, err := os.ReadFile(filepath.Join(elsewhere, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	for what, key := range map[string]string{"no key": "broken", "the key of another": string(other)} {
		refused := strings.Count(log.String(), "keeping the old certificate")
		expect.Replaced(t, filepath.Join(dir, "2", "tls.key"), key)
		expect.True(t, what+" is refused", func() bool {
			return strings.Count(log.String(), "keeping the old certificate") > refused
		})
		if got := r.shown(); got != second {
			t.Errorf("%s: shown %s, want %s", what, got, second)
		}
	}
	third := writePair(t, dir, "3")
	expect.True(t, "the third certificate is shown", func() bool { return r.shown() == third })
	granted(t, r.request(t.Context()))
}

// Without a usable pair the program does not start.
func TestCertificateMissing(t *testing.T) {
	o := testOptions()
	o.SecureServing, o.CertPath = true, t.TempDir()
	if _, err := New(o); problemsIn(err, "--cert-path: ", "tls.crt") != nil {
		t.Error(err)
	}
}
