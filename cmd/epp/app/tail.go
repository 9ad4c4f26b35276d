package app

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// The tail has at most tailReaders readers. A reader more than tailLines requests behind is dropped.
const (
	tailReaders = 8
	tailLines   = 1024
)

// tail passes ended requests to readers. Without readers, a request costs one atomic load. It is safe for concurrent
// use.
type tail struct {
	reading atomic.Int32

	mu      sync.Mutex
	readers map[*tailReader]bool
}

// tailReader is one reader of the tail.
type tailReader struct {
	// Immutable.
	flow     string             // "": all
	outcomes map[string]bool    // nil: all
	lines    chan extproc.Ended // closed: it was dropped
}

var errManyReaders = errors.New("the tail already has eight readers")

// join adds a reader.
func (t *tail) join(r *tailReader) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.readers) >= tailReaders {
		return errManyReaders
	}
	if t.readers == nil {
		t.readers = map[*tailReader]bool{}
	}
	t.readers[r] = true
	t.reading.Add(1)
	return nil
}

// leave removes a reader, unless it was dropped.
func (t *tail) leave(r *tailReader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(r)
}

func (t *tail) remove(r *tailReader) {
	if t.readers[r] {
		delete(t.readers, r)
		t.reading.Add(-1)
	}
}

// Wanted implements extproc.Tail.
func (t *tail) Wanted() bool { return t.reading.Load() > 0 }

// Ended implements extproc.Tail.
func (t *tail) Ended(e *extproc.Ended) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.readers {
		if !r.wants(e) {
			continue
		}
		select {
		case r.lines <- *e:
		default:
			t.remove(r)
			close(r.lines)
		}
	}
}

func (r *tailReader) wants(e *extproc.Ended) bool {
	return (r.flow == "" || r.flow == e.Flow) && (r.outcomes == nil || r.outcomes[e.Outcome.String()])
}

// outcomeNames returns the names of all outcomes.
func outcomeNames() (names []string) {
	for o := range flowcontrol.NumOutcomes {
		names = append(names, flowcontrol.Outcome(o).String())
	}
	return names
}
