package app

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/datastore"
)

// clientCA has the authorities for clients of the ext_proc server (--client-ca-file). The file may change.
type clientCA struct {
	log     logr.Logger
	file    string
	current atomic.Pointer[x509.CertPool] // never empty
}

// newClientCA reads the file.
func newClientCA(file string, log logr.Logger) (*clientCA, error) {
	c := &clientCA{log: log, file: file}
	text, err := os.ReadFile(file)
	if err == nil {
		err = c.use(text)
	}
	if err != nil {
		return nil, fmt.Errorf("--client-ca-file: %s: %w", file, err)
	}
	return c, nil
}

// use replaces the authorities with those in a PEM text. A text with anything but certificates is refused as a whole.
func (c *clientCA) use(text []byte) error {
	pool := x509.NewCertPool()
	for n := 1; ; n++ {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			if n == 1 {
				return errors.New("must have at least one certificate in PEM")
			}
			c.current.Store(pool)
			return nil
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("block %d: %q: must be a CERTIFICATE", n, block.Type)
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("block %d: %w", n, err)
		}
		pool.AddCert(authority)
	}
}

// follow follows the file. While it is broken, the old authorities stay in use.
func (c *clientCA) follow(files *datastore.Files) error {
	return files.Follow(c.file, func(text []byte, err error) {
		if err == nil {
			err = c.use(text)
		}
		if err != nil {
			c.log.Error(err, "keeping the old authorities of client certificates", "file", c.file)
			return
		}
		c.log.Info("authorities of client certificates", "file", c.file)
	})
}
