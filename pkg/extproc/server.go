package extproc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// Server serves Envoy's external processing streams. Create it with NewServer and register it with
// extprocv3.RegisterExternalProcessorServer. It has no goroutines of its own.
type Server struct {
	// Immutable.
	controller Controller
	picker     Picker
	log        logr.Logger
	metrics    *metrics
	elsewhere  *servedElsewhere
	memory     bodyAccount
	plateau    plateau
	unobserved unobserved
	presence   presence
	ties       ties
	once       warnings
	unreadSaid atomic.Uint64 // a bit for each synonym that was warned about

	// config is replaced whole by SetConfig; a stream keeps the one that it began with.
	config atomic.Pointer[compiled]

	// drawMu guards draw, the source of target draws.
	drawMu sync.Mutex
	draw   *rand.Rand
}

// Dependencies are what a Server works with. All but the seed are required; Log may be its zero value.
type Dependencies struct {
	Controller Controller
	Picker     Picker
	Log        logr.Logger
	Registerer prometheus.Registerer
	// Rand draws the targets of models; nil: seeded at random.
	Rand *rand.Rand
}

// NewServer validates cfg and registers the metrics.
func NewServer(cfg Config, deps Dependencies) (*Server, error) {
	if deps.Controller == nil || deps.Picker == nil || deps.Registerer == nil {
		return nil, errors.New("extproc: controller, picker and registerer are required")
	}
	s := &Server{
		controller: deps.Controller,
		picker:     deps.Picker,
		log:        deps.Log,
		metrics:    newMetrics(),
		elsewhere:  newElsewhere(deps.Log, deps.Picker),
		draw:       deps.Rand,
	}
	if s.draw == nil {
		s.draw = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	s.plateau.report = s.reportPlateau
	s.metrics.bind(s)
	if err := s.SetConfig(cfg); err != nil {
		return nil, err
	}
	if err := s.metrics.register(deps.Registerer, s.elsewhere); err != nil {
		return nil, fmt.Errorf("extproc: registering metrics: %w", err)
	}
	return s, nil
}

// SetConfig validates cfg and makes it the configuration of streams that begin from now on. On an error, which
// names every problem, nothing changes.
func (s *Server) SetConfig(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("extproc: %w", err)
	}
	s.config.Store(compile(&cfg))
	return nil
}

// Streams is the number of open streams.
func (s *Server) Streams() int { return int(s.plateau.active.Load()) }

// Process serves one stream; it implements extprocv3.ExternalProcessorServer.
func (s *Server) Process(conn extprocv3.ExternalProcessor_ProcessServer) error {
	return s.serve(conn)
}
