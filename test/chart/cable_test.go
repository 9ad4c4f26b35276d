package chart

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// cable connects to the apiserver until it is cut.
type cable struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// newCable returns a cable to the apiserver at a URL.
func newCable(t *testing.T, url string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: listener, to: strings.TrimPrefix(url, "https://")}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { c.join(conn) })
		}
	})
	t.Cleanup(func() { c.sever(); serving.Wait() })
	return c
}

// url is the apiserver's URL by this cable.
func (c *cable) url() string { return "https://" + c.listener.Addr().String() }

// join copies in both directions until one end closes.
func (c *cable) join(conn net.Conn) {
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		_ = conn.Close()
		return
	}
	c.mu.Lock()
	c.conns = append(c.conns, conn, far)
	cut := c.cut
	c.mu.Unlock()
	if !cut {
		var back sync.WaitGroup
		back.Go(func() { _, _ = io.Copy(conn, far); _ = conn.Close() })
		_, _ = io.Copy(far, conn)
		_ = far.Close()
		back.Wait()
	}
	_, _ = conn.Close(), far.Close()
}

// sever cuts the cable: connections break, and new ones fail.
func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	_ = c.listener.Close()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}
