package extproc

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// warnings are what is said at most once in the life of the process.
type warnings struct{ said sync.Map }

func (w *warnings) warn(log logr.Logger, key, message string, keysAndValues ...any) {
	if _, again := w.said.LoadOrStore(key, true); !again {
		log.Info("WARNING: "+message, keysAndValues...)
	}
}

// envoyDefaultRequests is how many requests Envoy's default circuit breaker lets a cluster have at once; each open
// stream is one.
const envoyDefaultRequests = 1024

// A plateau is a number of streams that comes to the limit so often, or stands there for so long, and never goes over
// it.
const (
	plateauHits = 8
	plateauTime = time.Second
)

// plateau counts the open streams, and notices when their number stands at Envoy's default limit.
type plateau struct {
	report func() // called at most once
	once   sync.Once
	active atomic.Int64
	above  atomic.Bool // there were more: the limit is not the default
	hits   atomic.Int64
}

// enter counts a new stream.
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

func (p *plateau) leave() { p.active.Add(-1) }

// reportPlateau says what the number means, and the remedy.
func (s *Server) reportPlateau() {
	s.log.Info("WARNING: the number of streams stands at exactly 1024, Envoy's default circuit breaker: raise "+
		"circuit_breakers.thresholds max_requests, max_pending_requests and max_connections of the cluster that "+
		"Envoy reaches Weir by, and of the model servers' cluster; what is beyond is answered 500 by Envoy",
		"streams", envoyDefaultRequests)
}

// unobservedRun is how many streams in a row have to end as if nobody wanted to see the answers.
const unobservedRun = 16

// unobservedWithin is how soon after the answer such a stream ends.
const unobservedWithin = 5 * time.Millisecond

// unobserved notices that Envoy ends the streams before the answers have ended, so that completion is not seen: with
// response headers and trailers both on SKIP just after the request was answered; with response trailers on SKIP just
// after the response headers, which shows only with answers that are streamed. Trailer modes are told by no message,
// so that it has to be seen by behaviour.
type unobserved struct{ atRequest, atHeaders atomic.Int64 }

// seen takes in a stream that has seen its answer, at whatever time it ended.
func (u *unobserved) seen() {
	u.atRequest.Store(0)
	u.atHeaders.Store(0)
}

// ended takes in the end of a stream whose request was dispatched: how long after its last answer it ended, whether
// that was the answer to the request, and whether the answer is a streamed one. It reports each case once.
func (u *unobserved) ended(after time.Duration, sawResponse, streamed bool) (report bool) {
	run := &u.atRequest
	if sawResponse {
		u.atRequest.Store(0)
		if !streamed {
			return false
		}
		run = &u.atHeaders
	}
	if after > unobservedWithin {
		run.Store(0)
		return false
	}
	return run.Add(1) == unobservedRun
}
