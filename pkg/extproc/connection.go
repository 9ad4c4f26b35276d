package extproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// connection is the ext_proc stream under a machine: a request's main stream (mainStream) or its first-token gate
// (gate). It sends messages, and receives them in the background once the machine waits for other events as well.
type connection struct {
	server *shared
	cfg    *compiled // the configuration at the start of the stream
	wire   extprocv3.ExternalProcessor_ProcessServer
	begun  time.Time
	reader reader
}

// machine decides the replies to the messages of one connection.
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

// LongestHold is the longest time that Envoy holds a request for an external processor (max_message_timeout).
const LongestHold = time.Hour

// WaitMargin is added to a request's longest wait in the message timeout requested from Envoy.
const WaitMargin = 5 * time.Second

// maxChunk is the largest part of a body, in bytes, that Envoy accepts back in one message.
const maxChunk = 64 << 10

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
func newConnection(s *shared, wire extprocv3.ExternalProcessor_ProcessServer, begun time.Time) connection {
	return connection{
		server: s, cfg: s.config.Load(), wire: wire, begun: begun,
		reader: reader{Context: wire.Context(), wire: wire, gone: make(chan struct{})},
	}
}

// sendChunks sends bytes back as body messages of at most maxChunk, the last one with end.
func (c *connection) sendChunks(b []byte, end bool, chunk func([]byte, bool) *extprocv3.ProcessingResponse) error {
	for len(b) > maxChunk {
		if err := c.wire.Send(chunk(b[:maxChunk], false)); err != nil {
			return err
		}
		b = b[maxChunk:]
	}
	return c.wire.Send(chunk(b, end))
}

// extend asks Envoy to wait at least that long for the answer to its last message.
func (c *connection) extend(wait time.Duration) error {
	return c.wire.Send(&extprocv3.ProcessingResponse{
		OverrideMessageTimeout: durationpb.New(min(wait+WaitMargin, LongestHold)),
	})
}

// receiveInBackground starts the reader, so that the caller can wait for other events as well. It does nothing if the
// reader runs already.
func (c *connection) receiveInBackground() {
	c.reader.start(&c.server.memory, c.cfg.Limits.MaxBodyBytesTotal)
}

// unexpected counts a message that makes no sense in the state that the stream is in.
func (c *connection) unexpected(message, state string) {
	c.server.metrics.unexpected.WithLabelValues(message, state).Inc()
}

// goneError returns the reason for the end of a stream before its request was offered.
func (c *connection) goneError() error {
	if errors.Is(c.wire.Context().Err(), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// reportPanic counts a panic and logs it with its stack. The deferred function that recovered it must call it.
func (c *connection) reportPanic(p any, doing, state string) {
	c.server.metrics.panics.Inc()
	c.server.log.Error(fmt.Errorf("extproc: panic: %v", p), doing, "state", state, "stack", string(debug.Stack()))
}

// reader receives in a goroutine of its own. It is also the context for the waits of the stream's goroutine: it is done
// when the stream has ended, for any reason. It is part of the connection, so that a request that never waits costs
// only one channel.
type reader struct {
	context.Context // the stream's
	wire            extprocv3.ExternalProcessor_ProcessServer
	// gone is closed by the reader's goroutine when the stream has ended.
	gone chan struct{}
	// eof is set if the last receive, in either goroutine, found that Envoy had closed the stream.
	eof bool
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

// start starts the goroutine. From then on messages come through inbox, and the end of the stream through gone.
func (r *reader) start(memory *bodyMemory, limit int64) {
	if r.inbox != nil {
		return
	}
	r.inbox = newInbox(memory, limit)
	r.stopped = make(chan struct{})
	go r.run(r.inbox, r.stopped)
}

// closed reports whether Envoy closed the stream before it cancelled it, if the close was received.
func (r *reader) closed() bool {
	if r.inbox == nil {
		return r.eof
	}
	select {
	case <-r.gone:
		return r.eof
	default:
		return false
	}
}

// run receives until the stream ends or its handler has returned.
func (r *reader) run(inbox *inbox, stopped <-chan struct{}) {
	defer close(r.gone)
	for {
		m, err := r.wire.Recv()
		if err != nil {
			r.eof = errors.Is(err, io.EOF)
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

// stop drops the unread messages. The goroutine ends once the handler has returned, because that ends Recv.
func (r *reader) stop() {
	if r.inbox != nil {
		close(r.stopped)
		r.inbox.close()
	}
}
