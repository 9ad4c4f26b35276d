package recording

import (
	"bytes"
	"errors"
	"slices"
	"sync"
)

const (
	// segmentSize is the size in bytes at which a segment ends.
	segmentSize = 64 << 10
	// slack bounds the ring's excess over its limit while the follower is behind: a quarter of the limit, but at least
	// leastSlack segments.
	slack, leastSlack = 4, 16
	// segmentHead is the memory of a segment besides its content, in bytes.
	segmentHead = 64
	// mostReserved bounds the memory that a ring takes before it has anything to keep, in bytes.
	mostReserved = 16 << 20
)

// taken returns the size in bytes that a segment counts for in the ring.
func taken(segment []byte) int { return len(segment) + segmentHead }

// errEnded is the error of a recording that End has ended.
var errEnded = errors.New("recording: it has been switched off")

// errBehind is the error of a recording that ended because its follower was too slow.
var errBehind = errors.New("recording: the recording has ended, because its follower was too slow")

// ring holds the latest segments, the oldest first. It is safe for concurrent use.
type ring struct {
	wake chan struct{}

	mu       sync.Mutex
	limit    int // bytes
	shrinks  int // the size, while it exceeds a lowered limit; else 0
	segments [][]byte
	size     int
	spare    [][]byte
	lost     error // why there is no recording any more
}

func newRing(limit int) *ring { return &ring{limit: limit, wake: make(chan struct{}, 1)} }

// reserve takes the memory of the ring at once, up to mostReserved: the collector's next run depends on all that is held,
// and so comes as rarely as it does when the ring is full. Until it is used, no page of it is touched.
func (r *ring) reserve() {
	for n := min(r.limit, mostReserved) / segmentSize; n > 0; n-- {
		r.spare = append(r.spare, newBuffer())
	}
}

func newBuffer() []byte { return make([]byte, 0, segmentSize+segmentSize/8) }

// push adds a segment and returns a buffer for the next one. A segment sealed early is copied, so the ring holds no
// more memory than it counts.
func (r *ring) push(segment []byte) (next []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil {
		return segment
	}
	if len(segment) < cap(segment)/2 {
		next, segment = segment, bytes.Clone(segment)
	}
	r.segments = append(r.segments, segment)
	r.size += taken(segment)
	if r.size > max(r.limit, r.shrinks)+max(r.limit/slack, leastSlack*segmentSize) {
		r.lose(errBehind)
	}
	if r.size > r.limit {
		r.wakeFollower()
	}
	if next != nil {
		return next
	}
	if n := len(r.spare); n > 0 {
		next, r.spare = r.spare[n-1], r.spare[:n-1]
		return next
	}
	return newBuffer()
}

// lose ends the recording for a reason. The caller holds r.mu.
func (r *ring) lose(why error) {
	r.lost, r.segments, r.spare, r.size = why, nil, nil, 0
	r.wakeFollower()
}

func (r *ring) wakeFollower() {
	select {
	case r.wake <- struct{}{}:
	default: // the follower is already about to look
	}
}

// end ends the recording for a reason.
func (r *ring) end(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose(why)
}

// resize changes the limit.
func (r *ring) resize(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit < r.limit {
		r.spare = nil
	}
	if r.limit = limit; r.size > limit && r.lost == nil {
		r.shrinks = r.size
		r.wakeFollower()
	}
}

func (r *ring) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// all returns the segments. The caller must prevent them from being recycled while it reads them.
func (r *ring) all() ([][]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.segments), r.lost
}

// oldest removes and returns the oldest segment if the ring exceeds its limit; otherwise it returns nil.
func (r *ring) oldest() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size <= r.limit || len(r.segments) == 0 {
		return nil
	}
	segment := r.segments[0]
	r.segments[0] = nil
	r.segments = r.segments[1:]
	r.size -= taken(segment)
	if r.shrinks = min(r.shrinks, r.size); r.size <= r.limit {
		r.shrinks = 0
	}
	return segment
}

// recycle keeps the buffer of a segment for a later one.
func (r *ring) recycle(segment []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil && len(r.spare) < leastSlack && cap(segment) >= segmentSize {
		r.spare = append(r.spare, segment[:0])
	}
}
