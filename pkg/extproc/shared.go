package extproc

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/metering"
)

// shared has the parts shared by the streams of a server. They are safe for concurrent use.
type shared struct {
	// Immutable.
	controller Controller
	picker     Picker
	log        logr.Logger
	names      bool    // the controller wants the requests' IDs
	records    Records // nil: none
	tail       Tail    // takes ended requests; may be nil
	tracer     Tracer  // makes their spans; nil: they have none

	metrics    *metrics
	elsewhere  *servedElsewhere
	memory     bodyMemory
	plateau    plateau
	unobserved unobserved
	silence    silence
	links      links
	meter      metering.Meter
	draw       draw
	once       warnings
	unnamed    atomic.Uint64 // requests without an ID, counted for sampling
	unreadSaid atomic.Uint64 // a bit for each synonym warned about

	// config is replaced as a whole by SetConfig. A stream keeps the one from its start.
	config atomic.Pointer[compiled]
}

// draw draws the targets of models.
type draw struct {
	mu     sync.Mutex
	source *rand.Rand // guarded by mu
}

// IntN implements request.Draw.
func (d *draw) IntN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source.IntN(n)
}

// tailed reports whether the tail has a reader.
func (s *shared) tailed() bool { return s.tail != nil && s.tail.Wanted() }
