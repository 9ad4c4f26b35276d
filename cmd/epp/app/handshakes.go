package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"
)

// prefaceStart is the beginning of an HTTP/2 connection without TLS ("PRI * HTTP/2.0"), as long as the header of a TLS
// record.
const prefaceStart = "PRI *"

// tellAgain is the shortest time between two lines about failed handshakes of one kind.
const tellAgain = 10 * time.Minute

// The reasons of failed TLS handshakes; values of the label reason.
const (
	handshakePlaintext     = "plaintext"
	handshakeNoCertificate = "no-certificate"
	handshakeCertificate   = "certificate"
	handshakeOther         = "other"
)

var handshakeReasons = []string{handshakePlaintext, handshakeNoCertificate, handshakeCertificate, handshakeOther}

// handshakeAdvice is the log's advice on failures that only an operator can fix: an Envoy that cannot connect fails
// open, and requests would bypass the queue without an explanation.
var handshakeAdvice = map[string]string{
	handshakePlaintext: "a plaintext client at the TLS port: its requests do not pass Weir; start epp with " +
		"--secure-serving=false, or give Envoy's cluster TLS (transport_socket)",
	handshakeNoCertificate: "a client without a certificate: its requests do not pass Weir; give Envoy's cluster one " +
		"(transport_socket, tls_certificates), or start epp without --client-ca-file",
	handshakeCertificate: "a client with a certificate that is not accepted: its requests do not pass Weir; it must be valid, " +
		"for client authentication, and from an authority in --client-ca-file",
}

// handshakes is the credentials of a server. It counts failed TLS handshakes by reason and logs those that an operator
// can fix.
type handshakes struct {
	credentials.TransportCredentials
	log    logr.Logger
	failed *prometheus.CounterVec
	told   *tellings
}

// tellings has the counts of failed handshakes, by reason, and when each reason was last logged.
type tellings struct {
	mu     sync.Mutex
	failed map[string]int
	latest time.Time // of the last failure
	last   map[string]time.Time
}

func newHandshakes(c credentials.TransportCredentials, log logr.Logger) handshakes {
	h := handshakes{c, log, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_tls_handshake_failures_total",
		Help: "Failed TLS handshakes at the ext_proc port, by reason.",
	}, []string{"reason"}), &tellings{failed: map[string]int{}, last: map[string]time.Time{}}}
	for _, reason := range handshakeReasons {
		h.failed.WithLabelValues(reason)
	}
	return h
}

// ServerHandshake implements credentials.TransportCredentials.
func (h handshakes) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := h.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		reason := handshakeReason(err)
		h.failed.WithLabelValues(reason).Inc()
		now := time.Now()
		h.told.count(reason, now)
		if advice, worth := handshakeAdvice[reason]; worth && h.told.due(reason, now) {
			h.log.Error(err, advice, "client", conn.RemoteAddr().String())
		}
	}
	return secure, info, err
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials {
	h.TransportCredentials = h.TransportCredentials.Clone()
	return h
}

func handshakeReason(err error) string {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &record) && string(record.RecordHeader[:]) == prefaceStart:
		return handshakePlaintext
	case errors.As(err, &certificate):
		return handshakeCertificate
	case strings.Contains(err.Error(), "client didn't provide a certificate"): // crypto/tls has no value for it
		return handshakeNoCertificate
	default:
		return handshakeOther
	}
}

// count counts a failed handshake.
func (t *tellings) count(reason string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed[reason]++
	t.latest = now
}

// summary returns, for the status page, the counts of failed handshakes by reason, and the time of the last one.
func (t *tellings) summary(now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	total, parts := 0, []string(nil)
	for _, reason := range handshakeReasons {
		if n := t.failed[reason]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%s %d", reason, n))
		}
	}
	if total == 0 {
		return "0 failed"
	}
	return fmt.Sprintf("%d failed\t%s; the last one %v ago", total, strings.Join(parts, ", "), now.Sub(t.latest).Round(time.Second))
}

// failedLately reports whether a handshake has failed within the time before now.
func (t *tellings) failedLately(now time.Time, within time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.latest.IsZero() && now.Sub(t.latest) < within
}

// due reports whether a reason must be logged now, and notes that it was.
func (t *tellings) due(reason string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, told := t.last[reason]; told && now.Sub(last) < tellAgain {
		return false
	}
	t.last[reason] = now
	return true
}
