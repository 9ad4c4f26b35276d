package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/request"
)

// requestBody has the bytes of one request's body received so far, and their memory (bodymemory.go). Only the holder of
// the turn may use it (turn.go). collectbody.go handles the messages.
type requestBody struct {
	turn turn
	// arrival is bodyMemory's record of the body; nil if none was awaited.
	arrival *arrival
	memory  *bodyMemory
	limits  *request.Limits
	// announced is the content length, or -1.
	announced int64

	bytes []byte
	// charged is the charge to bodyMemory: the capacity of bytes.
	charged int64
	// whole reports whether bytes is the whole body. A first part tells nothing about the rest.
	whole bool
	// trailers reports whether trailers ended the body. They are answered after it.
	trailers bool
	seen     bool
}

// await begins to await the body of q, whose stream began at the given time, and takes the turn. Modes other than
// FULL_DUPLEX_STREAMED show the body only when it is complete, so the announced length counts as received.
func (b *requestBody) await(stream interface{ expel(err error) }, q *request.Request, mode request.BodyMode, begun time.Time) {
	received := int64(0)
	if mode != request.FullDuplex {
		received = min(max(q.ContentLength, 0), b.limits.MaxBodyBytes)
	}
	b.announced = q.ContentLength
	b.turn.begin()
	b.arrival = &arrival{stream: stream}
	b.memory.expect(b.arrival, q.Tenant, begun, b.limits.BodyTimeout, received)
}

// add appends the next part; last is set for the last one. The first part is kept without a copy, since most bodies are
// one message. An error refuses the request.
func (b *requestBody) add(part []byte, last bool) error {
	err := b.append(part, last)
	if err != nil || last {
		b.turn.end()
	}
	if err != nil {
		b.drop()
	}
	return err
}

func (b *requestBody) append(part []byte, last bool) error {
	b.seen = true
	if last {
		if err := b.memory.complete(b.arrival); err != nil {
			return err
		}
	}
	length := int64(len(b.bytes) + len(part))
	if err := b.limits.CheckBody(length); err != nil {
		return err
	}
	if len(part) == 0 {
		return nil
	}
	room := b.room(part, last)
	if err := b.memory.charge(b.arrival, int64(len(part)), room-b.charged, b.limits.MaxBodyBytesTotal); err != nil {
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

// room returns the capacity for the body with its next part. It grows by doubling, up to the announced length and the
// limit; bodyMemory is charged for it, not for its contents.
func (b *requestBody) room(part []byte, last bool) int64 {
	length, room := int64(len(b.bytes)+len(part)), int64(cap(b.bytes))
	switch {
	case b.bytes == nil:
		return max(length, min(int64(cap(part)), b.limits.MaxBodyBytes)) // the excess is the allocator's rounding
	case length <= room:
		return room
	case last:
		return length
	}
	room = min(2*room, b.limits.MaxBodyBytes)
	if b.announced > 0 {
		room = min(room, b.announced)
	}
	return max(room, length)
}

// drop releases the body and its memory.
func (b *requestBody) drop() {
	if b.arrival != nil {
		b.memory.release(b.arrival)
		b.bytes, b.charged = nil, 0
	}
}
