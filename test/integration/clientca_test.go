package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/pki"
)

// With --client-ca-file Weir serves only an Envoy with a certificate of that authority. Without one, or with another's,
// an Envoy cannot open a stream. Its filter fails open here, so Weir logs why the requests bypass it. (With
// fail-closed.yaml the clients would get the filter's error.) TestClientCertificates has all kinds of certificates.
func TestEnvoyNeedsACertificate(t *testing.T) {
	t.Parallel()
	ours, others := pki.NewAuthority(t), pki.NewAuthority(t)
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate, key := ours.Issue("weir", nil)
	write("tls.crt", certificate)
	write("tls.key", key)
	ca := write("ca.crt", ours.PEM)
	flags := []string{"--secure-serving", "--cert-path=" + dir, "--client-ca-file=" + ca, "--tls-min-version=1.3"}

	// secured gives Envoy's cluster TLS with the certificate of an authority, or none.
	secured := func(authority *pki.Authority) func(envoyrun.Bootstrap) error {
		context := map[string]any{
			"tls_params":         map[string]any{"tls_maximum_protocol_version": "TLSv1_3"},
			"validation_context": map[string]any{"trusted_ca": map[string]any{"filename": ca}},
		}
		if authority != nil {
			certificate, key := authority.Issue("envoy", nil)
			context["tls_certificates"] = []any{map[string]any{
				"certificate_chain": map[string]any{"inline_bytes": certificate},
				"private_key":       map[string]any{"inline_bytes": key},
			}}
		}
		return func(b envoyrun.Bootstrap) error {
			b.Cluster(envoyrun.WeirCluster)["transport_socket"] = map[string]any{
				"name": "envoy.transport_sockets.tls",
				"typed_config": map[string]any{
					"@type":              "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
					"common_tls_context": context,
				},
			}
			return nil
		}
	}
	for _, test := range []struct {
		name      string
		authority *pki.Authority
		log       string // the operator's line; empty: requests pass Weir
	}{
		{"ours", ours, ""},
		{"none", nil, "a client without a certificate"},
		{"another's", others, "a client with a certificate that is not accepted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{flags: flags, edit: secured(test.authority)})
			for range 3 {
				if got := s.send(ask{}); got.status != 200 {
					t.Errorf("got %d %v %s", got.status, got.err, got.body)
				}
			}
			streams := s.epp.value("weir_extproc_streams_total")
			if test.log == "" {
				if streams != 3 {
					t.Errorf("%v streams, want 3", streams)
				}
				return
			}
			if streams != 0 {
				t.Errorf("%v streams, want none", streams)
			}
			expect.Eventually(t, "it is told", func() error {
				if log := s.epp.Log.String(); !strings.Contains(log, test.log) {
					return fmt.Errorf("the log is %s", log)
				}
				return nil
			})
		})
	}
}
