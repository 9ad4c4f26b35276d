package modelsim

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/internal/zmtp"
)

// queued is the largest number of messages waiting for a subscriber; further ones are lost, as with ZeroMQ.
const queued = 1000

// publisher publishes the changes of a KV cache like vLLM's ZmqEventPublisher: on a ZeroMQ PUB socket.
type publisher struct {
	listener net.Listener
	block    int // tokens of a block
	conns    sync.WaitGroup

	mu   sync.Mutex // guards the rest
	next uint64     // sequence number
	to   map[net.Conn]chan []byte
	over bool
}

// publish listens at an address.
func publish(address string, block int) (*publisher, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("modelsim: KV events: %w", err)
	}
	p := &publisher{listener: l, block: block, to: map[net.Conn]chan []byte{}}
	p.conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			p.conns.Go(func() { p.serve(conn) })
		}
	})
	return p, nil
}

// close ends all connections, and returns when they have ended.
func (p *publisher) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.over = true
	for conn := range p.to {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.conns.Wait()
}

// serve serves a connection of a subscriber.
func (p *publisher) serve(conn net.Conn) {
	defer conn.Close()
	messages := make(chan []byte, queued)
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return
	}
	p.to[conn] = nil // nothing before its subscription
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.to, conn)
		close(messages)
	}()
	r := bufio.NewReader(conn)
	if zmtp.Shake(conn, r, zmtp.Pub, zmtp.Sub) != nil {
		return
	}
	p.conns.Go(func() {
		for m := range messages {
			if _, err := conn.Write(m); err != nil {
				_ = conn.Close()
			}
		}
	})
	for {
		f, err := zmtp.Next(r)
		if err != nil || f.Size > 1<<10 {
			return
		}
		body := make([]byte, f.Size)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		if len(body) == 1 && body[0] == 1 { // to all topics; these messages have none
			p.mu.Lock()
			p.to[conn] = messages
			p.mu.Unlock()
		}
	}
}

// tell publishes changes as one message.
func (p *publisher) tell(changes []engine.BlockChange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seq := binary.BigEndian.AppendUint64(nil, p.next)
	p.next++
	m := zmtp.Append(nil, nil, seq, appendBatch(nil, changes, p.block, time.Now()))
	for _, messages := range p.to {
		select {
		case messages <- m:
		default:
		}
	}
}

// appendBatch appends a KVEventBatch in msgpack: [time, events, rank].
func appendBatch(dst []byte, changes []engine.BlockChange, block int, now time.Time) []byte {
	dst = append(dst, 0x93, 0xcb)
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(float64(now.UnixMicro())/1e6))
	events := 0
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(append(dst, 0xdd), 0)
	for len(changes) > 0 {
		n := 1
		for changes[0].Kind == engine.Stored && n < len(changes) && changes[n].Kind == engine.Stored && changes[n].Parent == changes[n-1].Hash {
			n++
		}
		dst = appendEvent(dst, changes[:n], block)
		changes = changes[n:]
		events++
	}
	binary.BigEndian.PutUint32(dst[at+1:], uint32(events))
	return append(dst, 0) // the rank
}

// appendEvent appends an event: consecutive stored blocks, one removed block, or all cleared.
func appendEvent(dst []byte, changes []engine.BlockChange, block int) []byte {
	text := func(s string) { dst = append(append(dst, 0xa0|byte(len(s))), s...) }
	hash := func(h uint64) { dst = binary.BigEndian.AppendUint64(append(dst, 0xcf), h) }
	hashes := func() {
		text("block_hashes")
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdd), uint32(len(changes)))
		for _, c := range changes {
			hash(c.Hash)
		}
	}
	medium := func() {
		text("medium")
		text("GPU")
	}
	switch changes[0].Kind {
	case engine.Stored:
		dst = append(dst, 0x88)
		text("type")
		text("BlockStored")
		hashes()
		text("parent_block_hash")
		if changes[0].Parent == 0 {
			dst = append(dst, 0xc0)
		} else {
			hash(changes[0].Parent)
		}
		text("token_ids") // the simulated engine has none: zeros
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdd), uint32(len(changes)*block))
		dst = append(dst, make([]byte, len(changes)*block)...)
		text("block_size")
		dst = binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(block))
		text("lora_id")
		dst = append(dst, 0xc0)
		medium()
		text("lora_name")
		dst = append(dst, 0xc0)
	case engine.Removed:
		dst = append(dst, 0x83)
		text("type")
		text("BlockRemoved")
		hashes()
		medium()
	case engine.Cleared:
		dst = append(dst, 0x81)
		text("type")
		text("AllBlocksCleared")
	}
	return dst
}
