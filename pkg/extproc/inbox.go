package extproc

import (
	"sync"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// The bounds of an inbox. A stream reaches them only if a body arrives while its request waits in the header phase
// (FULL_DUPLEX_STREAMED without collecting, STREAMED without waiting). Beyond them gRPC's flow control holds Envoy back,
// and only the stream's context shows that it has ended.
const (
	inboxMessages = 256
	inboxBytes    = 1 << 20
)

// inbox holds, in order, the messages received by a reader and not yet processed by its stream.
type inbox struct {
	memory *bodyMemory
	limit  int64 // of memory

	mu       sync.Mutex
	messages []*extprocv3.ProcessingRequest
	bytes    int64

	ready chan struct{} // holds a value if there may be a message
	room  chan struct{} // holds a value if there may be room
}

func newInbox(memory *bodyMemory, limit int64) *inbox {
	return &inbox{memory: memory, limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put adds m and reports whether there was room. An empty inbox always has room for one message.
func (b *inbox) put(m *extprocv3.ProcessingRequest) bool {
	n := bodyBytes(m)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.messages) > 0 {
		if len(b.messages) >= inboxMessages || b.bytes+n > inboxBytes || !b.memory.take(n, b.limit) {
			return false
		}
	} else {
		b.memory.add(n)
	}
	b.messages = append(b.messages, m)
	b.bytes += n
	signal(b.ready)
	return true
}

// get removes and returns the oldest message, or returns nil if there is none.
func (b *inbox) get() *extprocv3.ProcessingRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.messages) == 0 {
		return nil
	}
	m := b.messages[0]
	b.messages[0] = nil
	b.messages = b.messages[1:]
	n := bodyBytes(m)
	b.bytes -= n
	b.memory.add(-n)
	signal(b.room)
	return m
}

// close drops the messages and releases their memory. A message that arrives later is not accounted for.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory.add(-b.bytes)
	b.messages, b.bytes = nil, 0
	b.memory = new(bodyMemory)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// bodyBytes returns the memory of a message: of its body, the only part that can be large, and of the rest.
func bodyBytes(m *extprocv3.ProcessingRequest) int64 {
	return int64(cap(m.GetRequestBody().GetBody()) + cap(m.GetResponseBody().GetBody()))
}
