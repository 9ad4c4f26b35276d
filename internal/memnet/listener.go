// Package memnet is an HTTP server's network in memory, for tests in a synctest bubble.
//
// gRPC's bufconn does not work for net/http: the server interrupts a read with a deadline in the past and then clears
// it, and bufconn's timer may set the timeout after that. The next read then fails, and a healthy request's handler
// finds its context cancelled. The connections here are net.Pipe's, whose deadlines have no such race.
package memnet

import (
	"context"
	"net"
	"sync"
)

// Listener accepts the connections of Dial. It implements net.Listener.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a listener, open until Close.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the listener, ignoring the network and the address. It fails with net.ErrClosed once the listener is
// closed, or with the context's error.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener; it is idempotent.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (*Listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }
