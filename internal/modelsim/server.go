package modelsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
)

// Server is a [Handler] with a listener: HTTP/1.1 and HTTP/2 without TLS on the same port.
type Server struct {
	*Handler
	http     http.Server
	listener net.Listener

	conns  sync.WaitGroup // open connections
	served chan error     // what Serve returned
	events *publisher     // nil: none
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
	if cfg.KVEvents != "" {
		if s.events, err = publish(cfg.KVEvents, cfg.Engine.BlockSize); err != nil {
			s.Close()
			return nil, err
		}
		s.runner.watchBlocks(s.events.tell)
	}
	return s, nil
}

// KVEvents returns the address of the publisher of KV events, or "" without one.
func (s *Server) KVEvents() string {
	if s.events == nil {
		return ""
	}
	return s.events.listener.Addr().String()
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
		if s.events != nil {
			s.events.close()
		}
	})
}

// Handler is the model server as an [http.Handler], for a listener of the caller's. It is safe for concurrent use.
type Handler struct {
	// Immutable.
	cfg      Config
	model    string // the served name as JSON
	since    int64  // Unix seconds
	prepared [apis]preparedAnswer
	runner   *runner
	watch    *watch

	started, completed, failed, aborted atomic.Uint64
	inFlight, maxInFlight               atomic.Int64

	log recordLog

	quirky  atomic.Bool // there are injected quirks
	quirkMu sync.Mutex
	quirks  []*injected // guarded by quirkMu
}

// NewHandler returns a model server without a listener. Close it to stop its timer.
func NewHandler(cfg Config) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	core, err := engine.New(cfg.Engine)
	if err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg, model: string(quoted(cfg.Model)), since: time.Now().Unix(), watch: newWatch()}
	h.runner = &runner{core: core, choices: make(map[engine.ID]choiceOf), watch: h.watch, punctual: cfg.Punctual}
	h.log.ring = make([]Record, 0, cfg.Records)
	for i := range apis {
		h.prepared[i] = h.prepare(api(i))
	}
	return h, nil
}

// Close stops the engine. Requests still in flight end only when their clients leave; close the listener first.
func (h *Handler) Close() { h.runner.close() }

// ServeHTTP routes by path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	for i, served := range apiPaths {
		if path == served {
			if r.Method != http.MethodPost {
				w.Header()["Content-Type"] = jsonType
				w.WriteHeader(http.StatusMethodNotAllowed)
				_, _ = w.Write([]byte(`{"detail":"Method Not Allowed"}`))
				return
			}
			h.infer(w, r, api(i))
			return
		}
	}
	switch path {
	case "/health", "/ping":
		w.WriteHeader(http.StatusOK)
	case "/metrics":
		w.Header()["Content-Type"] = textType
		_, _ = w.Write(h.exposition())
	case "/reset_prefix_cache":
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
		} else if !h.runner.resetCache() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	case FaultsPath:
		if !h.cfg.Faults {
			notFound(w)
			return
		}
		h.serveFaults(w, r)
	case "/v1/models":
		w.Header()["Content-Type"] = jsonType
		_, _ = w.Write(h.modelList())
	default:
		notFound(w)
	}
}

func notFound(w http.ResponseWriter) {
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"detail":"Not Found"}`))
}

func (h *Handler) modelList() []byte {
	body := append([]byte(`{"object":"list","data":[{"id":`), h.model...)
	body = append(body, `,"object":"model","created":`...)
	body = strconv.AppendInt(body, h.since, 10)
	body = append(body, `,"owned_by":"modelsim","root":`...)
	body = append(body, h.model...)
	body = append(body, `,"parent":null`...)
	if h.cfg.MaxModelLen > 0 {
		body = field(body, "max_model_len", h.cfg.MaxModelLen)
	}
	return append(body, "}]}"...)
}

// quoted returns the text as JSON.
func quoted(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return b
}

// buffers are for request bodies and for events on their way out.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
