package kubeenv

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/weir-epp/weir/internal/pki"
)

// writeKeys writes the apiserver's files: an authority, a certificate, and the key for signing service account tokens.
// It returns an administrator's credentials.
func writeKeys(t *testing.T, dir string) rest.TLSClientConfig {
	t.Helper()
	authority := pki.NewAuthority(t)
	serving, servingKey := authority.Issue("kube-apiserver", nil)
	accounts, accountsKey := authority.Issue("service-accounts", nil)
	for name, text := range map[string][]byte{
		"ca.crt": authority.PEM, "tls.crt": serving, "tls.key": servingKey,
		"service-accounts.crt": accounts, "service-accounts.key": accountsKey,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	admin, adminKey := authority.Issue("admin", func(template *x509.Certificate) {
		template.Subject.Organization = []string{"system:masters"}
	})
	return rest.TLSClientConfig{CAData: authority.PEM, CertData: admin, KeyData: adminKey}
}
