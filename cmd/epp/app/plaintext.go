package app

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/credentials"
)

// prefaceStart is the beginning of an HTTP/2 connection without TLS ("PRI * HTTP/2.0"), as long as the header of a TLS
// record.
const prefaceStart = "PRI *"

// noticing is the credentials of the server. It logs once if a client speaks HTTP/2 without TLS: an Envoy whose cluster
// has no TLS then fails open, and nobody would learn why requests bypass the queue.
type noticing struct {
	credentials.TransportCredentials
	log  logr.Logger
	once *sync.Once
}

func newNoticing(c credentials.TransportCredentials, log logr.Logger) noticing {
	return noticing{c, log, new(sync.Once)}
}

// ServerHandshake implements credentials.TransportCredentials.
func (n noticing) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := n.TransportCredentials.ServerHandshake(conn)
	var record tls.RecordHeaderError
	if errors.As(err, &record) && string(record.RecordHeader[:]) == prefaceStart {
		n.once.Do(func() {
			n.log.Error(err, "a plaintext client at the TLS port: its requests do not pass Weir; start epp with "+
				"--secure-serving=false, or give Envoy's cluster TLS (transport_socket)", "client", conn.RemoteAddr().String())
		})
	}
	return secure, info, err
}

// Clone implements credentials.TransportCredentials.
func (n noticing) Clone() credentials.TransportCredentials {
	return noticing{n.TransportCredentials.Clone(), n.log, n.once}
}
