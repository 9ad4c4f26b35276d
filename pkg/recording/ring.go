package recording

import (
	"bytes"
	"errors"
	"slices"
	"sync"
)

const (
	// segmentSize is where a segment ends, in bytes.
	segmentSize = 64 << 10
	// slack is how far the ring may grow beyond its size while the follower is behind, in parts of its size, and at least
	// in segments.
	slack, leastSlack = 4, 16
	// segmentHead is what a segment takes beside its bytes.
	segmentHead = 64
)

// taken is how much of the ring a segment takes, in bytes.
func taken(segment []byte) int { return len(segment) + segmentHead }

// errBehind ends a recording whose follower does not keep pace.
var errBehind = errors.New("recording: the follower did not keep pace, and the recording has ended")

// ring holds the last segments, the oldest first.
type ring struct {
	limit int // bytes
	wake  chan struct{}

	mu       sync.Mutex
	segments [][]byte
	size     int
	spare    [][]byte
	lost     error // why there is no recording any more
}

func newRing(limit int) *ring { return &ring{limit: limit, wake: make(chan struct{}, 1)} }

// push adds a segment and returns the memory for the next one. A segment that was sealed early is copied, so that the ring
// does not hold more memory than it counts.
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
	if r.size > r.limit+max(r.limit/slack, leastSlack*segmentSize) {
		r.lose(errBehind)
	}
	if r.size > r.limit {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	if next != nil {
		return next
	}
	if n := len(r.spare); n > 0 {
		next, r.spare = r.spare[n-1], r.spare[:n-1]
		return next
	}
	return make([]byte, 0, segmentSize+segmentSize/8)
}

// lose ends the recording. r.mu is held.
func (r *ring) lose(why error) {
	r.lost, r.segments, r.spare, r.size = why, nil, nil, 0
}

// end ends the recording, and err is why it has ended.
func (r *ring) end(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose(why)
}

func (r *ring) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// all are the segments. Their memory is theirs until they are recycled.
func (r *ring) all() ([][]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.segments), r.lost
}

// oldest removes and returns the oldest segment if the limit is exceeded, or returns nil.
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
	return segment
}

// recycle keeps the memory of a segment for another one.
func (r *ring) recycle(segment []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil && len(r.spare) < leastSlack && cap(segment) >= segmentSize {
		r.spare = append(r.spare, segment[:0])
	}
}
