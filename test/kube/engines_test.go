package kube

import (
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// engines are model servers at addresses of 127.0.0.0/8 for pods' IPs: all at one port, like the pods of a pool, each
// with its own slots and counters. Connections to other addresses of this machine are closed at once.
type engines struct {
	t        *testing.T
	config   modelsim.Config
	listener net.Listener

	mu      sync.Mutex
	servers map[netip.Addr]*engine
}

// engine is the part of the listener for one address.
type engine struct {
	*modelsim.Server
	address     net.Addr
	connections chan net.Conn
	closed      chan struct{}
	close       sync.Once
}

// startEngines returns engines of a configuration, without an address yet.
func startEngines(t *testing.T, config modelsim.Config) *engines {
	t.Helper()
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	es := &engines{t: t, config: config, listener: listener, servers: map[netip.Addr]*engine{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		es.accept()
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
		for _, e := range es.servers {
			e.Server.Close()
		}
	})
	return es
}

func (es *engines) accept() {
	for {
		conn, err := es.listener.Accept()
		if err != nil {
			return
		}
		address := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr()
		es.mu.Lock()
		e := es.servers[address]
		es.mu.Unlock()
		if e == nil {
			_ = conn.Close()
			continue
		}
		select {
		case e.connections <- conn:
		case <-e.closed:
			_ = conn.Close()
		}
	}
}

// at returns the engine of an address, which starts at its first use.
func (es *engines) at(ip string) *modelsim.Server {
	es.t.Helper()
	address, err := netip.ParseAddr(ip)
	if err != nil || !address.IsLoopback() {
		es.t.Fatalf("%s is no loopback address", ip)
	}
	es.mu.Lock()
	defer es.mu.Unlock()
	if e := es.servers[address]; e != nil {
		return e.Server
	}
	e := &engine{
		address: net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, uint16(es.port()))), connections: make(chan net.Conn),
		closed: make(chan struct{}),
	}
	if e.Server, err = modelsim.Serve(e, es.config); err != nil {
		es.t.Fatal(err)
	}
	es.servers[address] = e
	return e.Server
}

// port is the port of all engines, for the pool's targetPorts.
func (es *engines) port() int { return es.listener.Addr().(*net.TCPAddr).Port }

// addresses returns the engines at these IPs for Envoy: all that Weir may pick.
func (es *engines) addresses(ips ...string) []string {
	es.t.Helper()
	var list []string
	for _, ip := range ips {
		es.at(ip)
		list = append(list, net.JoinHostPort(ip, strconv.Itoa(es.port())))
	}
	return list
}

// Accept implements net.Listener.
func (e *engine) Accept() (net.Conn, error) {
	select {
	case conn := <-e.connections:
		return conn, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (e *engine) Close() error {
	e.close.Do(func() { close(e.closed) })
	return nil
}

// Addr implements net.Listener.
func (e *engine) Addr() net.Addr { return e.address }
