package recording

import (
	"bytes"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// Drop does what Run does when it is woken.
func (r *Recorder) Drop() error { return r.drop() }

// Len returns the length of the current segment.
func (r *Recorder) Len() int { return len(r.buf) }

// SegmentSize is the number of bytes at which a segment ends.
const SegmentSize = segmentSize

// Memory returns the memory that the ring holds, in bytes.
func (r *Recorder) Memory() (held int) {
	for _, s := range append(r.ring.segments, r.ring.spare...) {
		held += cap(s)
	}
	return held
}

// DropAll repeats and drops all segments.
func (r *Recorder) DropAll() error {
	limit := r.ring.limit
	defer func() { r.ring.limit = limit }()
	r.ring.limit = 0
	return r.drop()
}

// WithSegment returns a file with another segment at its end.
func WithSegment(text, segment []byte) []byte {
	end := len(text) - chunkHead
	f := &file{out: bytes.Clone(text[:end])}
	f.out = append(f.out, chunkSegment)
	f.out = order.AppendUint32(f.out, uint32(len(segment)))
	f.out = append(order.AppendUint32(f.out, 0), segment...)
	f.out = append(f.out, text[end:]...) // the end
	return Resum(f.out)
}

// Resum returns a file with correct checksums.
func Resum(text []byte) []byte {
	f := &file{out: text[:len(magic):len(magic)]}
	for rest := text[len(magic):]; len(rest) >= chunkHead; {
		kind, size := rest[0], int(order.Uint32(rest[1:]))
		f.chunk(kind, rest[chunkHead:chunkHead+size])
		rest = rest[chunkHead+size:]
	}
	return f.out
}

// Chunks returns the offsets of the content of each chunk of a kind.
func Chunks(text []byte, kind byte) (chunks [][2]int) {
	for at := len(magic); at < len(text); {
		size := int(order.Uint32(text[at+1:]))
		if text[at] == kind {
			chunks = append(chunks, [2]int{at + chunkHead, at + chunkHead + size})
		}
		at += chunkHead + size
	}
	return chunks
}

// Crowd makes every segment one beyond the limit, and wakes Run.
func (r *Recorder) Crowd() {
	r.ring.mu.Lock()
	defer r.ring.mu.Unlock()
	r.ring.limit = 0
	r.ring.wake <- struct{}{}
}

// Split returns a file's first line and its chunks, each with its head.
func Split(text []byte) (line []byte, chunks [][]byte) {
	line = text[:len(magic)]
	for rest := text[len(magic):]; len(rest) > 0; {
		size := chunkHead + int(order.Uint32(rest[1:]))
		chunks = append(chunks, rest[:size])
		rest = rest[size:]
	}
	return line, chunks
}

// ToldOf records that a request with a number, whatever it is, has learned its destination.
func (r *Recorder) ToldOf(number uint64) {
	r.event(told, time.Time{})
	r.number(number)
}

// Forget makes the recorder forget whom the current event is about.
func (r *Recorder) Forget() { r.own = nil }

// Followed returns the state of the follower's machine.
func (r *Recorder) Followed() dispatch.State {
	if err := r.ready(); err != nil {
		panic(err)
	}
	return r.player.machine.State()
}
