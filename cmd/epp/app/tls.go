package app

import (
	"crypto/tls"
	"maps"
	"slices"
)

// The values of --tls-min-version.
const (
	TLS12 = "1.2"
	TLS13 = "1.3"
)

// tlsVersions lists the permitted least versions.
var tlsVersions = map[string]uint16{TLS12: tls.VersionTLS12, TLS13: tls.VersionTLS13}

// cipherSuites lists the selectable cipher suites: those of TLS 1.2 that crypto/tls calls secure. The suites of TLS 1.3
// are not selectable.
var cipherSuites = func() map[string]uint16 {
	suites := map[string]uint16{}
	for _, s := range tls.CipherSuites() {
		if slices.Contains(s.SupportedVersions, tls.VersionTLS12) {
			suites[s.Name] = s.ID
		}
	}
	return suites
}()

func cipherSuiteNames() []string { return slices.Sorted(maps.Keys(cipherSuites)) }

// spoken is the permitted part of TLS of a server.
type spoken struct {
	least  uint16
	suites []uint16 // of TLS 1.2; nil: those of crypto/tls
}

// spoken returns the part of TLS permitted by the valid options.
func (o *Options) spoken() spoken {
	s := spoken{least: tlsVersions[o.TLSMinVersion]}
	for _, name := range o.TLSCipherSuites {
		s.suites = append(s.suites, cipherSuites[name])
	}
	return s
}

// serverTLS returns the configuration of a server that presents the newest certificate. With authorities, it admits
// only clients with a certificate of one of them.
func serverTLS(cert *certificate, speaks spoken, authorities *clientCA) *tls.Config {
	c := &tls.Config{
		MinVersion: speaks.least, CipherSuites: speaks.suites,
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
