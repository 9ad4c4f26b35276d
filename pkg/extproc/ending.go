package extproc

import (
	"sync"
	"sync/atomic"
)

// ending lets all streams be ended with OK, so that Envoy lets running answers go on, unobserved; gRPC's own Stop
// resets them, and an Envoy that fails closed then cuts the answers.
//
// A handler that sits in Recv cannot be woken for that (gRPC reports a cancelled Recv to the peer as an error by
// itself), so a stream that is to be ended needs a reader's goroutine. It is given one where that costs nothing that
// counts: with an answer that is streamed, which lasts, and with every request since BeginDrain. What is left out is
// an answer in one piece that was asked for before BeginDrain and takes longer than the whole drain.
type ending struct {
	draining atomic.Bool
	once     sync.Once
	now      chan struct{}
}

// BeginDrain is told when the process is to end: from now on every stream can be ended by EndStreams.
func (s *Server) BeginDrain() { s.ending.draining.Store(true) }

// EndStreams ends with OK the streams whose requests were answered. Requests that wait are the controller's to
// reject. It is for the end of the drain, before gRPC's Stop.
func (s *Server) EndStreams() { s.ending.once.Do(func() { close(s.ending.now) }) }

// wanted says whether a stream needs a reader so that it can be ended.
func (e *ending) wanted(streamed bool) bool { return streamed || e.draining.Load() }
