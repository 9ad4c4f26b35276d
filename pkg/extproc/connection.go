package extproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// connection is the ext_proc stream under a machine: a request's main stream (mainStream) or its first-token gate (gate).
// It sends messages, and receives them in the background once the machine has something else to wait for.
type connection struct {
	server *Server
	cfg    *compiled // the configuration at the start of the stream
	wire   extprocv3.ExternalProcessor_ProcessServer
	begun  time.Time
	reader reader
}

// machine decides what to answer to the messages of one connection.
type machine interface {
	// next returns the next message. An error ends the stream.
	next() (*extprocv3.ProcessingRequest, error)
	// on answers one message. An error ends the stream.
	on(*extprocv3.ProcessingRequest) error
	// panicked is called with the value of a panic in next or on. The stream ends after it.
	panicked(any)
	// end releases everything that the stream holds. It does not panic.
	end()
}

// errFinished ends a stream after its last message.
var errFinished = errors.New("extproc: the last message was sent")

// run passes messages to a machine, from the first one to the end of the stream.
func run(m machine, message *extprocv3.ProcessingRequest) {
	defer m.end()
	defer func() {
		if p := recover(); p != nil {
			m.panicked(p)
		}
	}()
	for {
		if err := m.on(message); err != nil {
			return
		}
		var err error
		if message, err = m.next(); err != nil {
			return
		}
	}
}

// newConnection returns the connection of a stream that began at the given time.
func newConnection(s *Server, wire extprocv3.ExternalProcessor_ProcessServer, begun time.Time) connection {
	return connection{
		server: s, cfg: s.config.Load(), wire: wire, begun: begun,
		reader: reader{Context: wire.Context(), wire: wire, gone: make(chan struct{})},
	}
}

// send sends one message. An error means that the stream has ended.
func (c *connection) send(r *extprocv3.ProcessingResponse) error { return c.wire.Send(r) }

// receiveInBackground starts the reader, so that the caller can wait for other events as well. It does nothing if the
// reader runs already.
func (c *connection) receiveInBackground() {
	c.reader.start(&c.server.memory, c.cfg.Limits.MaxBodyBytesTotal)
}

// unexpected counts a message that makes no sense in the state that the stream is in.
func (c *connection) unexpected(message, state string) {
	c.server.metrics.unexpected.WithLabelValues(message, state).Inc()
}

// reportPanic counts a panic and logs it with its stack. It has to be called by the deferred function that recovered it.
func (c *connection) reportPanic(p any, doing, state string) {
	c.server.metrics.panics.Inc()
	c.server.log.Error(fmt.Errorf("extproc: panic: %v", p), doing, "state", state, "stack", string(debug.Stack()))
}

// reader receives in a goroutine of its own. It is also the context of whatever the stream's goroutine waits for
// meanwhile: it is done when the stream has ended, for any reason. It is part of the connection, so that a request that
// never waits pays for one channel only.
type reader struct {
	context.Context // the stream's
	wire            extprocv3.ExternalProcessor_ProcessServer
	// gone is closed by the reader's goroutine when the stream has ended. From then on closed reports whether Envoy has
	// closed the stream before it cancelled it.
	gone   chan struct{}
	closed bool
	// inbox and stopped are set by start.
	inbox   *inbox
	stopped chan struct{}
}

// Done implements context.Context. Only a running reader closes the channel.
func (r *reader) Done() <-chan struct{} { return r.gone }

// Err implements context.Context.
func (r *reader) Err() error {
	if err := r.Context.Err(); err != nil {
		return err
	}
	select {
	case <-r.gone:
		return context.Canceled
	default:
		return nil
	}
}

// Deadline implements context.Context.
func (r *reader) Deadline() (time.Time, bool) { return r.Context.Deadline() }

func (r *reader) running() bool { return r.inbox != nil }

// start starts the goroutine. From then on messages come through inbox, and the end of the stream through gone.
func (r *reader) start(memory *bodyAccount, limit int64) {
	if r.running() {
		return
	}
	r.inbox = newInbox(memory, limit)
	r.stopped = make(chan struct{})
	go r.run(r.inbox, r.stopped)
}

// run receives until the stream ends or its handler has returned.
func (r *reader) run(inbox *inbox, stopped <-chan struct{}) {
	defer close(r.gone)
	for {
		m, err := r.wire.Recv()
		if err != nil {
			r.closed = errors.Is(err, io.EOF)
			return
		}
		for !inbox.put(m) {
			select {
			case <-inbox.room:
			case <-r.Context.Done():
				return
			case <-stopped:
				return
			}
		}
	}
}

// stop drops the messages that nobody has read. The goroutine ends once the handler has returned, because that ends Recv.
func (r *reader) stop() {
	if r.running() {
		close(r.stopped)
		r.inbox.close()
	}
}
