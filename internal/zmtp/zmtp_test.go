package zmtp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// Two sides of different types greet each other. Two of the same type do not.
func TestShake(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for peer, refused := range map[string]bool{Sub: false, Pub: true} {
		ended := make(chan error)
		go func() {
			c, err := net.Dial("tcp", l.Addr().String())
			if err == nil {
				defer c.Close()
				err = Shake(c, bufio.NewReader(c), peer, Pub)
			}
			ended <- err
		}()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := Shake(c, bufio.NewReader(c), Pub, Sub); (err != nil) != refused {
			t.Errorf("PUB meets %s: %v", peer, err)
		}
		if err := <-ended; peer == Sub && err != nil {
			t.Errorf("SUB meets PUB: %v", err)
		}
		_ = c.Close()
	}
}

// A message is its frames, short and long.
func TestFrames(t *testing.T) {
	want := [][]byte{nil, []byte("12345678"), bytes.Repeat([]byte("x"), 300)}
	r := bufio.NewReader(bytes.NewReader(Append(nil, want...)))
	for i, w := range want {
		f, err := Next(r)
		if err != nil || f.Command || f.More != (i < 2) || f.Size != uint64(len(w)) {
			t.Fatalf("frame %d: %+v, %v", i, f, err)
		}
		got := make([]byte, f.Size)
		if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, w) {
			t.Fatalf("frame %d: %q, %v", i, got, err)
		}
	}
	if _, err := Next(r); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// Any other bytes instead of a greeting are an error, without a panic.
func TestStrangersAreRefused(t *testing.T) {
	null := string(greeting)
	for name, says := range map[string]string{
		"nothing":              "",
		"HTTP":                 "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\r\nthis is no ZeroMQ at all, it is HTTP",
		"ZMTP 2":               "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x01" + strings.Repeat("\x00", 60),
		"CURVE":                strings.Replace(null, "NULL\x00", "CURVE", 1),
		"half a greeting":      null[:40],
		"a message for READY":  null + "\x00\x05hello",
		"another command":      null + "\x04\x06\x05ERROR",
		"a huge READY":         null + "\x06\x7f\xff\xff\xff\xff\xff\xff\xff",
		"a name cut off":       null + "\x04\x0c\x05READY\xffSocke",
		"a property cut off":   null + "\x04\x15\x05READY\x0bSocket-Typ",
		"a value cut off":      null + "\x04\x16\x05READY\x0bSocket-Type\xff\xff\xff\xff",
		"a socket for replies": null + "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REP",
		"flags":                null + "\xf4\x01\x00",
	} {
		if err := Shake(io.Discard, bufio.NewReader(strings.NewReader(says)), Sub, Pub); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzShake(f *testing.F) {
	f.Add([]byte(string(greeting) + "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB\x00\x01x"))
	f.Fuzz(func(_ *testing.T, says []byte) {
		r := bufio.NewReader(bytes.NewReader(says))
		if Shake(io.Discard, r, Sub, Pub) != nil {
			return
		}
		for {
			if _, err := Next(r); err != nil {
				return
			}
		}
	})
}
