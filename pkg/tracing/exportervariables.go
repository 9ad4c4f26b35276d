package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// exporter reads the exporter's variables.
func (v *variables) exporter(cfg *Config) {
	name, value := v.ofExporter("PROTOCOL")
	switch value {
	case "", GRPC:
	case HTTP:
		cfg.Protocol = HTTP
	default:
		v.bad(name, value, "must be one of %s, %s", GRPC, HTTP)
	}
	v.endpoint(cfg)
	name, value = v.ofExporter("TIMEOUT")
	cfg.Timeout = v.millis(name, value, cfg.Timeout)
	switch name, value = v.ofExporter("COMPRESSION"); value {
	case "", "none":
	case "gzip":
		cfg.Gzip = true
	default:
		v.bad(name, value, "must be one of gzip, none")
	}
	v.headers(cfg)
	v.certificates(cfg)
}

// headers reads the headers of exports. They may be secrets, so problems do not quote them.
func (v *variables) headers(cfg *Config) {
	name, value := v.ofExporter("HEADERS")
	pairs, err := pairsOf(value)
	if err != nil {
		v.bad(name, "…", "%s", err)
		return
	}
	cfg.Headers = map[string]string{}
	for i, p := range pairs {
		if !httpguts.ValidHeaderFieldName(p.key) || !httpguts.ValidHeaderFieldValue(p.value) {
			v.bad(name, "…", "part %d is no valid header", i+1)
			return
		}
		cfg.Headers[strings.ToLower(p.key)] = p.value
	}
}

// certificates reads the files with the collector's authorities and with Weir's own certificate.
func (v *variables) certificates(cfg *Config) {
	authority, authorityFile := v.ofExporter("CERTIFICATE")
	own, ownFile := v.ofExporter("CLIENT_CERTIFICATE")
	key, keyFile := v.ofExporter("CLIENT_KEY")
	if authorityFile == "" && ownFile == "" && keyFile == "" {
		return
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorityFile != "" {
		pem, err := os.ReadFile(authorityFile)
		secure.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			v.bad(authority, authorityFile, "%s", err)
		case !secure.RootCAs.AppendCertsFromPEM(pem):
			v.bad(authority, authorityFile, "has no certificate in PEM")
		}
	}
	switch {
	case ownFile == "" && keyFile == "":
	case ownFile == "":
		v.bad(key, keyFile, "has no use without %sCLIENT_CERTIFICATE", exporterPrefix)
	case keyFile == "":
		v.bad(own, ownFile, "has no use without %sCLIENT_KEY", exporterPrefix)
	default:
		certificate, err := tls.LoadX509KeyPair(ownFile, keyFile)
		if err != nil {
			v.bad(own, ownFile, "%s", err)
			return
		}
		secure.Certificates = []tls.Certificate{certificate}
	}
	cfg.TLS = secure
}
