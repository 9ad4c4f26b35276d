package extproc

import (
	"sync"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// requestBody collects the body of one request.
type requestBody struct {
	bytes []byte
	// charged is what the memory account was charged: the capacity of bytes.
	charged int64
	// whole reports whether bytes is the whole body. A first part tells nothing about the rest.
	whole bool
	// trailers reports whether trailers ended the body. They are answered after it.
	trailers bool
	seen     bool
}

// add appends the next part. The first part is kept without a copy, since most bodies are one message. Room for more
// grows by doubling, up to the announced length and the limit; the account is charged for the room, not its contents.
// The request is to be refused with the error.
func (b *requestBody) add(part []byte, last bool, announced int64, limits *request.Limits, memory *bodyAccount, a *arrival) error {
	b.seen = true
	if last {
		if err := memory.complete(a); err != nil {
			return err
		}
	}
	length := int64(len(b.bytes) + len(part))
	if err := limits.CheckBody(length); err != nil {
		return err
	}
	if len(part) == 0 {
		return nil
	}
	room := int64(cap(b.bytes))
	if b.bytes == nil {
		room = max(length, min(int64(cap(part)), limits.MaxBodyBytes)) // above the limit it is the allocator's rounding
	} else if length > room {
		if room = min(2*room, limits.MaxBodyBytes); announced > 0 {
			room = min(room, announced)
		}
		if room = max(room, length); last {
			room = length
		}
	}
	if err := memory.charge(a, int64(len(part)), room-b.charged, limits.MaxBodyBytesTotal); err != nil {
		return err
	}
	b.charged = room
	switch {
	case b.bytes == nil:
		b.bytes = part
		return nil
	case length > int64(cap(b.bytes)):
		b.bytes = append(make([]byte, 0, room), b.bytes...)
	}
	b.bytes = append(b.bytes, part...)
	return nil
}

// turn decides who acts for a stream while the rest of its body is awaited: its handler, or whoever expels the request
// because its body is late or its memory is needed (ADR 0015).
//
// Only Envoy can interrupt the handler's Recv, and a second goroutine that does nothing but receive would be one more for
// every request, although most bodies arrive at once. So the handler gives its turn away while it receives. expel, in a
// goroutine that exists only for a request to be expelled, takes the turn and sends the last message; Envoy then ends
// the stream, and with it Recv.
type turn struct {
	mu      sync.Mutex // held by whoever acts, while the body is awaited
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

// awaitBody begins to await the body.
func (st *mainStream) awaitBody() {
	announced := int64(0)
	if st.modes.request != request.FullDuplex { // the other modes show nothing before the last byte
		announced = min(max(st.request.ContentLength, 0), st.cfg.Limits.MaxBodyBytes)
	}
	st.enter(arriving)
	st.turn.begin()
	st.arrival = &arrival{stream: st}
	st.server.memory.expect(st.arrival, st.request.Tenant, st.begun, st.cfg.Limits.BodyTimeout, announced)
}

// nextOfBody returns the next message while the body is awaited, or errFinished if the request was expelled meanwhile.
func (st *mainStream) nextOfBody() (*extprocv3.ProcessingRequest, error) {
	m, err := st.receiveWithoutTurn()
	if !st.turn.awaited {
		st.turn.mu.Unlock()
		return nil, errFinished
	}
	return m, err
}

func (st *mainStream) receiveWithoutTurn() (*extprocv3.ProcessingRequest, error) {
	st.turn.mu.Unlock()
	defer st.turn.mu.Lock()
	return st.wire.Recv()
}

// collect appends the next part of the body; last is set if no more is awaited. The request is to be refused with the
// error.
func (st *mainStream) collect(part []byte, last bool) error {
	err := st.body.add(part, last, st.request.ContentLength, &st.cfg.Limits, &st.server.memory, st.arrival)
	if err != nil || last {
		st.turn.end()
	}
	if err != nil {
		st.dropBody()
	}
	return err
}

// dropBody releases the body and its memory.
func (st *mainStream) dropBody() {
	if st.arrival != nil {
		st.server.memory.release(st.arrival)
		st.body.bytes, st.body.charged = nil, 0
	}
}

// expel rejects the request because of its body, unless the handler no longer awaits it: the account's error reaches it
// there.
func (st *mainStream) expel(err error) {
	st.turn.mu.Lock()
	defer st.turn.mu.Unlock()
	if !st.turn.awaited {
		return
	}
	st.turn.awaited = false
	defer func() {
		if p := recover(); p != nil {
			st.reportPanic(p, "expelling a request", st.state.String())
		}
	}()
	st.body.bytes = nil
	_ = st.refuse(err) // an error means that the stream has ended
}
