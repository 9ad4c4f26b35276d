package modelsim

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// Server is a [Handler] with a listener: HTTP/1.1 and HTTP/2 without TLS on the same port.
type Server struct {
	*Handler
	http     http.Server
	listener net.Listener

	conns  sync.WaitGroup // open connections
	served chan error     // what Serve returned
	close  sync.Once
}

// Start listens on cfg.Address, or on a free port of 127.0.0.1, and serves until Close.
func Start(cfg Config) (*Server, error) {
	address := cfg.Address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("modelsim: starting: %w", err)
	}
	s, err := Serve(listener, cfg)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return s, nil
}

// Serve serves on the listener, which may be in memory, until Close.
func Serve(listener net.Listener, cfg Config) (*Server, error) {
	h, err := NewHandler(cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{Handler: h, listener: listener, served: make(chan error, 1)}
	s.http.Handler = h
	s.http.Protocols = new(http.Protocols)
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	s.http.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.conns.Done()
		case http.StateActive, http.StateIdle:
		}
	}
	go func() { s.served <- s.http.Serve(listener) }()
	return s, nil
}

// Address returns the listener's address, as host:port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// URL returns the server's root, without a slash at the end.
func (s *Server) URL() string { return "http://" + s.Address() }

// Close breaks all connections and returns when the server has stopped completely. Further calls do nothing.
func (s *Server) Close() {
	s.close.Do(func() {
		_ = s.http.Close() // a listener's error does not matter any more
		<-s.served
		s.conns.Wait()
		s.Handler.Close()
	})
}
