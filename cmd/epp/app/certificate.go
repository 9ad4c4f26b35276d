package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/datastore"
)

// certificate is a server's certificate for its clients: a self-signed certificate, or one from files that may change.
type certificate struct {
	log      logr.Logger
	crt, key string // files; empty: self-signed
	current  atomic.Pointer[tls.Certificate]
}

// selfSignedLife is longer than any process lives. No client verifies a self-signed certificate, so expiry would not
// protect any.
const selfSignedLife = 10 * 365 * 24 * time.Hour

// newCertificate loads the pair in dir, or makes a self-signed one if dir is empty. The flags that ask for TLS and name
// the directory are for its errors.
func newCertificate(dir, tlsFlag, dirFlag string, log logr.Logger) (*certificate, error) {
	c := &certificate{log: log}
	if dir == "" {
		pair, err := selfSigned()
		if err != nil {
			return nil, fmt.Errorf("--%s: making a self-signed certificate: %w", tlsFlag, err)
		}
		c.current.Store(pair)
		return c, nil
	}
	c.crt, c.key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("--%s: %s and %s: %w", dirFlag, c.crt, c.key, err)
	}
	return c, nil
}

func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.crt, c.key)
	if err != nil {
		return err
	}
	c.current.Store(&pair)
	return nil
}

// follow follows both files, if any. While the pair does not match, the old pair stays in use: the other half usually
// arrives a moment later.
func (c *certificate) follow(files *datastore.Files) error {
	if c.crt == "" {
		return nil
	}
	reload := func(_ []byte, err error) { // of one goroutine
		if err == nil {
			err = c.load()
		}
		if err != nil {
			c.log.Error(err, "keeping the old certificate", "file", c.crt)
			return
		}
		leaf := c.current.Load().Leaf
		c.log.Info("certificate", "file", c.crt, "subject", leaf.Subject.String(), "until", leaf.NotAfter.UTC())
	}
	return errors.Join(files.Follow(c.crt, reload), files.Follow(c.key, reload))
}

// expiry returns the metric with the end of the certificate's validity.
func (c *certificate) expiry() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_tls_certificate_expiry_timestamp_seconds",
		Help: "Expiry of the certificate of the ext_proc port, in seconds since 1970.",
	}, func() float64 { return float64(c.current.Load().Leaf.NotAfter.Unix()) })
}

func selfSigned() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "weir", Organization: []string{"weir"}},
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Hour), // clocks differ
		NotAfter:     time.Now().Add(selfSignedLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
