package app

import "crypto/tls"

// The values of --tls-min-version.
const (
	TLS12 = "1.2"
	TLS13 = "1.3"
)

// tlsVersions lists the versions that may be the least.
var tlsVersions = map[string]uint16{TLS12: tls.VersionTLS12, TLS13: tls.VersionTLS13}

// serverTLS returns the configuration of a server that presents the newest certificate. With authorities, it admits only
// clients that show a certificate of one of them.
func serverTLS(cert *certificate, least uint16, authorities *clientCA) *tls.Config {
	c := &tls.Config{
		MinVersion: least,
		NextProtos: []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return cert.current.Load(), nil
		},
	}
	if authorities == nil {
		return c
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.SessionTicketsDisabled = true // a ticket would outlive the authority that vouched for its client
	each := c.Clone()
	each.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := c.Clone()
		now.ClientCAs = authorities.current.Load()
		return now, nil
	}
	return each
}
