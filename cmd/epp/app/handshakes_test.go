package app

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/expect"
)

// A client that speaks HTTP/2 without TLS at the TLS port is logged once, with the remedy. Other clients without TLS,
// such as port scanners, are not logged as such.
func TestPlaintextClientIsTold(t *testing.T) {
	log := &child.Log{}
	o := testOptions()
	o.SecureServing = true
	o.Log, _ = newLogger(log, encoderConsole, 0)
	r := start(t, o)
	say := func(words string) {
		t.Helper()
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.Ports().GRPC))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // of the test
		if _, err := conn.Write([]byte(words)); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(soon))
		for buffer := make([]byte, 1024); err == nil; { // until the server has closed it
			_, err = conn.Read(buffer)
		}
	}
	const told = "a plaintext client at the TLS port"
	say("GET / HTTP/1.1\r\nhost: weir\r\n\r\n")
	if strings.Contains(log.String(), told) {
		t.Errorf("told of HTTP/1.1:\n%s", log.String())
	}
	for range 3 {
		say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	}
	expect.True(t, "it is told", func() bool { return strings.Contains(log.String(), told) })
	for _, want := range []string{"--secure-serving=false", "transport_socket", "127.0.0.1:"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), told); n != 1 {
		t.Errorf("logged %d times", n)
	}
	status := func(want string) {
		t.Helper()
		if _, page := r.debug("/statusz"); !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(page) {
			t.Errorf("/statusz has no line %q:\n%s", want, page)
		}
	}
	status(`streams +0 +none has come yet`)
	status(`handshakes +4 failed +plaintext 3, other 1; the last one \d+s ago`)
	granted(t, r.request(t.Context())) // a client with TLS is served nevertheless
	status(`streams +1 +the last one came \d+s ago`)
}
