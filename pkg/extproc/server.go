package extproc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/metering"
)

// Server serves Envoy's external processing streams. Create it with NewServer and register it with
// extprocv3.RegisterExternalProcessorServer. It starts no goroutine before the first stream.
type Server struct {
	shared
	lastStream atomic.Int64 // the time of the last stream, in nanoseconds since 1970; 0 before the first
}

// Dependencies are the parts used by a Server. Controller, Picker and Registerer are required.
type Dependencies struct {
	Controller Controller
	Picker     Picker
	Log        logr.Logger
	Registerer prometheus.Registerer
	// Rand draws the targets of models. Nil means a source with a random seed.
	Rand *rand.Rand
	// Records takes decision records; nil: none are made.
	Records Records
	// NameRequests passes each request's x-request-id to the controller.
	NameRequests bool
	// Tail takes ended requests; it may be nil.
	Tail Tail
	// Tracer makes the spans of requests; nil: they have none.
	Tracer Tracer
}

// NewServer returns a Server and registers its metrics. It returns an error if cfg is not valid or a metric is already
// registered.
func NewServer(cfg Config, deps Dependencies) (*Server, error) {
	if deps.Controller == nil || deps.Picker == nil || deps.Registerer == nil {
		return nil, errors.New("extproc: controller, picker and registerer are required")
	}
	s := &Server{shared: shared{
		controller: deps.Controller,
		picker:     deps.Picker,
		log:        deps.Log,
		elsewhere:  newElsewhere(deps.Log, deps.Picker),
		names:      deps.NameRequests,
		tail:       deps.Tail,
		records:    deps.Records,
		tracer:     deps.Tracer,
	}}
	s.metrics = newMetrics(s.plateau.active.Load, s.memory.bytes)
	if s.draw.source = deps.Rand; s.draw.source == nil {
		s.draw.source = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	s.plateau.log = deps.Log
	if err := s.SetConfig(cfg); err != nil {
		return nil, err
	}
	if err := s.metrics.register(deps.Registerer, s.elsewhere); err != nil {
		return nil, fmt.Errorf("extproc: registering metrics: %w", err)
	}
	return s, nil
}

// SetConfig makes cfg the configuration of later streams. If cfg is not valid, it returns an error that names every
// problem, and changes nothing.
func (s *Server) SetConfig(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("extproc: %w", err)
	}
	s.meter.Configure(cfg.Tokens)
	s.config.Store(compile(&cfg))
	return nil
}

// Streams returns the number of open streams.
func (s *Server) Streams() int { return int(s.plateau.active.Load()) }

// LastStream returns the time of the last stream's begin, the zero time before the first stream.
func (s *Server) LastStream() time.Time {
	if at := s.lastStream.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Process serves one stream. It implements extprocv3.ExternalProcessorServer.
//
// It always returns nil, because to Envoy an error means a failed processor.
func (s *Server) Process(wire extprocv3.ExternalProcessor_ProcessServer) error {
	growStack(0)
	begun := time.Now()
	s.lastStream.Store(begun.UnixNano())
	s.plateau.enter()
	defer s.plateau.leave()
	if first, err := wire.Recv(); err == nil {
		run(s.newMachine(wire, begun, first), first)
	}
	return nil
}

// UsageSeen returns the server's counts of usage since its start.
func (s *Server) UsageSeen() metering.Seen { return s.meter.Seen() }

// ServedElsewhere returns the number of requests for the endpoint at this address that another endpoint served, by
// Envoy's report.
func (s *Server) ServedElsewhere(address string) uint64 { return s.elsewhere.of(address) }

// newMachine returns the machine of a stream that began at the given time with the given message.
func (s *Server) newMachine(wire extprocv3.ExternalProcessor_ProcessServer, begun time.Time, first *extprocv3.ProcessingRequest) machine {
	c := newConnection(&s.shared, wire, begun)
	if s.isGate(wire.Context(), first) {
		return newGate(c)
	}
	return newMainStream(c, first)
}
