package extproc

import (
	"container/list"
	"sync"
)

// maxLogStreams is how many streams of Envoys' access logs are served at a time. Each worker thread of an Envoy has one.
const maxLogStreams = 4096

// logStreams are the streams of access logs that are open. When one more opens than there may be, another one ends: the
// oldest of those that have never brought a record of a request of ours, or if there is none, the one whose last such
// record is the oldest. So who can only connect, and holds any number of streams open, ends his own; an Envoy whose stream
// ends opens another with its next records.
type logStreams struct {
	mu sync.Mutex

	// Guarded by mu.
	strange list.List // of *logStream that have brought no record of ours, in the order of their beginnings
	proven  list.List // of the others, in the order of their last records of ours
}

// logStream is a stream of an access log.
type logStream struct {
	over chan struct{} // closed when the stream has to end

	// Guarded by the logStreams' mu.
	proven bool
	place  *list.Element // nil once it has ended, or has to
}

// open begins a stream, for which another one may have to end.
func (s *logStreams) open() *logStream {
	l := &logStream{over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strange.Len()+s.proven.Len() >= maxLogStreams {
		first := s.strange.Front()
		if first == nil {
			first = s.proven.Front()
		}
		victim := first.Value.(*logStream)
		s.remove(victim)
		close(victim.over)
	}
	l.place = s.strange.PushBack(l)
	return l
}

// prove notes that a stream has brought a record of a request of ours.
func (s *logStreams) prove(l *logStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.place == nil {
		return
	}
	s.remove(l)
	l.proven = true
	l.place = s.proven.PushBack(l)
}

// close ends a stream. It is idempotent.
func (s *logStreams) close(l *logStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(l)
}

// remove takes a stream out, if it is there. The caller holds s.mu.
func (s *logStreams) remove(l *logStream) {
	switch {
	case l.place == nil:
		return
	case l.proven:
		s.proven.Remove(l.place)
	default:
		s.strange.Remove(l.place)
	}
	l.place = nil
}
