package extproc

import "sync"

// turn decides which goroutine acts for a stream while its body is awaited: its handler, or the goroutine that expels
// the request because its body is late or its memory is needed (ADR 0015).
//
// Only Envoy can interrupt the handler's Recv, and a second goroutine just for receiving would cost every request,
// although most bodies arrive at once. So the handler gives up its turn while it receives. expel runs in a goroutine
// made only for an expelled request: it takes the turn and sends the last message; Envoy then ends the stream, and with
// it Recv.
type turn struct {
	mu      sync.Mutex // held by the acting goroutine, while the body is awaited
	awaited bool       // guarded by mu
}

// begin takes the turn for the handler, until end.
func (t *turn) begin() {
	t.mu.Lock()
	t.awaited = true
}

// end keeps the stream for the handler. It does nothing if the body is not awaited.
func (t *turn) end() {
	if t.awaited {
		t.awaited = false
		t.mu.Unlock()
	}
}

// lend gives up the turn while receive runs. It reports whether the body is still awaited; then the handler has the
// turn again, and otherwise no goroutine has it.
func (t *turn) lend(receive func()) (awaited bool) {
	t.without(receive)
	if awaited = t.awaited; !awaited {
		t.mu.Unlock()
	}
	return awaited
}

func (t *turn) without(receive func()) {
	t.mu.Unlock()
	defer t.mu.Lock()
	receive()
}

// take takes the turn for good, to expel the request, unless the handler no longer awaits the body. It waits for a
// handler that has the turn. give must be called after it.
func (t *turn) take() bool {
	t.mu.Lock()
	if !t.awaited {
		t.mu.Unlock()
		return false
	}
	t.awaited = false
	return true
}

func (t *turn) give() { t.mu.Unlock() }
