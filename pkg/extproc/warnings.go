package extproc

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// warnings logs each warning at most once in the life of the process.
type warnings struct{ said sync.Map }

func (w *warnings) warn(log logr.Logger, key, message string, keysAndValues ...any) {
	if _, again := w.said.LoadOrStore(key, true); !again {
		log.Info("WARNING: "+message, keysAndValues...)
	}
}

// silentRun is the number of consecutive answers without usage before it is reported.
const silentRun = 100

// silence notices if no answer reports its usage although requests are charged by it.
type silence struct{ run atomic.Int64 }

// ended records an answer, and whether its usage is known. It returns true when the silence must be reported.
func (s *silence) ended(known bool) (report bool) {
	if !known {
		return s.run.Add(1) == silentRun
	}
	if s.run.Load() != 0 {
		s.run.Store(0)
	}
	return false
}

// envoyDefaultRequests is the number of requests that a cluster may have at once by Envoy's default circuit breaker.
// Each open stream is one.
const envoyDefaultRequests = 1024

// The number of streams has a plateau if it reaches the limit this often, or stays there this long, and never exceeds
// it.
const (
	plateauHits = 8
	plateauTime = time.Second
)

// plateau counts the open streams, and notices a plateau at Envoy's default limit.
type plateau struct {
	log    logr.Logger
	once   sync.Once
	active atomic.Int64
	above  atomic.Bool // the limit was exceeded, so it is not the default
	hits   atomic.Int64
}

// enter counts a stream that begins.
func (p *plateau) enter() {
	n := p.active.Add(1)
	if n < envoyDefaultRequests {
		return
	}
	if n > envoyDefaultRequests {
		p.above.Store(true)
		return
	}
	if p.above.Load() {
		return
	}
	switch p.hits.Add(1) {
	case 1:
		time.AfterFunc(plateauTime, func() {
			if p.active.Load() == envoyDefaultRequests && !p.above.Load() {
				p.once.Do(p.report)
			}
		})
	case plateauHits:
		p.once.Do(p.report)
	}
}

// leave counts a stream that ends.
func (p *plateau) leave() { p.active.Add(-1) }

// report logs the meaning of a plateau, and the remedy. It is called at most once.
func (p *plateau) report() {
	p.log.Info("WARNING: the number of streams stands at exactly 1024, Envoy's default circuit breaker: raise "+
		"circuit_breakers.thresholds max_requests, max_pending_requests and max_connections of the cluster that "+
		"Envoy reaches Weir by, and of the model servers' cluster; Envoy answers 500 to the requests beyond",
		"streams", envoyDefaultRequests)
}
