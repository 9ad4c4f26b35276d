package kube

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy is a connection to an apiserver that can lose its packets: connections stay open, and nothing arrives.
type proxy struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	closed bool
	lossy  bool                  // new connections lose everything too
	lost   map[net.Conn]bool     // by the client's side: nothing comes through any more
	others map[net.Conn]net.Conn // by the client's side, the apiserver's
}

// newProxy starts a proxy to a URL.
func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		listener: listener, target: strings.TrimPrefix(url, "https://"), lost: map[net.Conn]bool{}, others: map[net.Conn]net.Conn{},
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp4", p.target)
			if err != nil || !p.joins(client, server) {
				_ = client.Close()
				continue
			}
			serving.Go(func() { p.carry(client, server, client) })
			serving.Go(func() { p.carry(server, client, client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		p.closed = true
		for client, server := range p.others {
			_ = client.Close()
			_ = server.Close()
		}
		p.mu.Unlock()
		serving.Wait()
	})
	return p
}

// joins records a connection; false: the proxy is closed.
func (p *proxy) joins(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = server.Close()
		return false
	}
	p.others[client], p.lost[client] = server, p.lossy
	return true
}

// carry copies from one side of a client's connection to the other one. It closes the other one at its end, unless the
// connection is lost.
func (p *proxy) carry(from, to, client net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		lost := p.lost[client]
		p.mu.Unlock()
		if !lost {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			if !lost && errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			return
		}
	}
}

// lose drops everything on present and new connections from now on.
func (p *proxy) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lossy = true
	for client := range p.lost {
		p.lost[client] = true
	}
}

// mend lets new connections through. Lost ones stay lost.
func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lossy = false
}

// Between the leader and the apiserver packets are lost, and no connection ends, as after the loss of a node or a
// firewall. The leader goes on leading and serving, and reports that the apiserver does not answer. The follower takes
// the Lease, and counts the leader's requests in flight. When new connections work, while the old ones are still lost,
// the first replica follows, and has all changes.
func TestPacketsToTheApiserverAreLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, electing, pool)
	w.pod("a", "10.0.0.1", true)
	flags := append([]string{"--takeover-window=1h"}, quick...)
	way := newProxy(t, w.env.Admin().Host)
	w.host = "https://" + way.listener.Addr().String()
	first := w.replica("weir-0", flags...)
	first.leads(w)
	w.host = ""
	second := w.replica("weir-1", flags...)
	second.follows(w)
	const up, foreign = `weir_kubernetes_apiserver_up{pool="chat"}`, `weir_foreign_stock{pool="chat"}`
	long := first.send("chat")
	long.granted(t)
	second.wantMetric(foreign, 1)

	way.lose()
	lost := time.Now()
	var led, noticed time.Duration
	for led == 0 || noticed == 0 {
		r := first.send("chat")
		r.granted(t)
		r.end()
		if !first.serving("readiness") || !first.serving("liveness") {
			t.Fatalf("%v after packets are lost the leader is not ready", time.Since(lost))
		}
		if led == 0 && second.serving("readiness") {
			led = time.Since(lost)
		}
		if up, _ := first.metric(up); noticed == 0 && up == 0 {
			noticed = time.Since(lost)
		}
		if time.Since(lost) > 60*time.Second {
			t.Fatalf("within 60 s: the other one leads after %v, that is seen after %v (0: never)", led, noticed)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("the other one leads after %v; the apiserver is said not to answer after %v", led, noticed)
	if most := 4*time.Second + 2*500*time.Millisecond + 5*time.Second; led > most { // of these the last is for a busy machine
		t.Errorf("the other one leads after %v, want at most %v", led, most)
	}
	if n, _ := first.metric(`weir_lease_failures_total{of="election",pool="chat"}`); n == 0 {
		t.Error("no failure of the election is counted")
	}
	if n, _ := second.metric(foreign); n != 1 {
		t.Errorf("the new leader counts %g requests of the old one, want 1", n)
	}
	r := second.send("chat")
	r.granted(t)
	r.end()
	w.pod("b", "10.0.0.2", true)
	second.want("10.0.0.1:8000", "10.0.0.2:8000")
	first.want("10.0.0.1:8000")

	way.mend()
	for first.serving("readiness") || len(first.endpoints()) != 2 {
		if time.Since(lost) > 60*time.Second {
			t.Fatalf("60 s after packets were lost, with a way that holds: ready %t, endpoints %s", first.serving("readiness"), first.endpoints())
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("the first one follows and has caught up %v after packets were lost", time.Since(lost))
	first.follows(w)
	second.leads(w)
	first.wantMetric(up, 1)
	if n, _ := second.metric(foreign); n != 1 {
		t.Errorf("the new leader counts %g requests of the old one, want the one that is in flight", n)
	}
	long.end()
	second.wantMetric(foreign, 0)
}
