package extproc

import (
	"context"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// reader receives while the stream's goroutine waits for something else. It is also the context of that wait: done
// when the stream has ended, in whatever way. It is part of the stream, so that a request that never waits pays one
// channel for it.
type reader struct {
	context.Context // the stream's
	conn            extprocv3.ExternalProcessor_ProcessServer
	// gone is closed by the reader's goroutine when the stream has ended.
	gone chan struct{}
	// inbox and stopped are made by start.
	inbox   *inbox
	stopped chan struct{}
}

func (r *reader) init(conn extprocv3.ExternalProcessor_ProcessServer) {
	r.Context, r.conn, r.gone = conn.Context(), conn, make(chan struct{})
}

// Done implements context.Context. It is closed when the reader sees the end, so it takes a running reader.
func (r *reader) Done() <-chan struct{} { return r.gone }

// Err implements context.Context: the stream's deadline, or cancelled.
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

// start starts the goroutine, once. From then on only inbox and gone tell of the stream.
func (r *reader) start(memory *bodyAccount, limit int64) {
	if r.running() {
		return
	}
	r.inbox = newInbox(memory, limit)
	r.stopped = make(chan struct{})
	go r.run(r.inbox, r.stopped)
}

// run ends with the stream: at its end, or when its handler has returned.
func (r *reader) run(inbox *inbox, stopped <-chan struct{}) {
	defer close(r.gone)
	for {
		m, err := r.conn.Recv()
		if err != nil {
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

// stop lets the goroutine go. It ends when the handler has returned, since that ends Recv.
func (r *reader) stop() {
	if r.running() {
		close(r.stopped)
		r.inbox.close()
	}
}
