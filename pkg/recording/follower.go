package recording

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-epp/weir/internal/graph"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// follower drops old segments from the ring. It repeats each of them on a machine of its own first, so that it always
// has the state at the beginning of the oldest segment that is kept, without holding the lock of the machine that is
// recorded. It also notices at once if the repetition differs.
type follower struct {
	checkpoints *graph.Codec
	config      dispatch.Config // that the machine began with
	hidden      bool            // the keys of flows are hashes
	ring        *ring
	begins      atomic.Int64 // the time at which the oldest kept segment begins, in nanoseconds since 1970

	mu      sync.Mutex // over ring: guards what follows
	player  player
	capture *graph.Capture // of the machine when the recording began; nil: player has its state
	changes graph.Changes
	ids     []string // of the requests that were there
}

// New returns a recorder that keeps about limit bytes once it has begun. If hide is not nil, it returns the text to record
// for a flow's key, in arrivals and in configurations. cfg is the machine's configuration: the recorder learns its types.
func (f *Format) New(cfg dispatch.Config, limit int, hide func(string) string) (*Recorder, error) {
	checkpoints, err := f.checkpoints(cfg)
	if err != nil {
		return nil, err
	}
	r := &Recorder{segment: *newSegment(time.Time{})}
	if hide != nil {
		r.hide = dispatch.Renaming(hide)
	}
	r.follower = &follower{
		checkpoints: checkpoints, hidden: hide != nil, ring: newRing(limit), capture: checkpoints.NewCapture((*beginning)(nil)),
	}
	r.follower.ring.reserve()
	r.restart(newBuffer())
	return r, nil
}

// The numbers of values behind pointers in an idle machine, and of a request, as they usually are.
const fewValues, valuesOfEach = 500, 5

// Begin begins the recording of machine m, which has this configuration, and of the board on which it places requests,
// between two events. live yields the requests that have not ended, and their IDs; nil: there are none. Begin only copies
// memory, since the machine stands still meanwhile; Run does the rest.
func (r *Recorder) Begin(
	now time.Time, m *dispatch.Machine, board *scheduling.Board, cfg dispatch.Config, live iter.Seq2[*dispatch.Waiter, string],
) error {
	first := &beginning{machine: m, board: board}
	if live != nil {
		for w, id := range live {
			first.live, r.ids = append(first.live, w), append(r.ids, id)
		}
	}
	if err := r.capture.Take(first, fewValues+valuesOfEach*len(first.live)); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	r.board, r.pool, r.base = board, board.Snapshot(), now
	r.config, r.player.base = r.hidden(cfg), now.Round(0).UTC()
	r.changes = graph.Changes{Key: r.hide, Time: func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return now.Round(0).UTC().Add(t.Sub(now)) // as times of events are, even if the system's clock was set
	}}
	r.begins.Store(now.UnixNano())
	return nil
}

// ready makes the first state of what Begin has captured.
func (f *follower) ready() error {
	if f.capture == nil {
		return nil
	}
	first, err := f.capture.Build(f.changes)
	f.capture = nil
	if err != nil {
		err = fmt.Errorf("recording: %w", err)
		f.ring.end(err)
		return err
	}
	f.player.state = first.(*beginning).state(f.ids)
	f.ids, f.changes = nil, graph.Changes{}
	return nil
}

// Run drops segments beyond the limit until ctx is done. If the recording ends before, it returns the reason.
func (f *follower) Run(ctx context.Context) error {
	for {
		switch err := f.drop(); {
		case errors.Is(err, errEnded):
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.ring.wake:
		}
	}
}

// drop drops segments until the ring is within its limit.
func (f *follower) drop() error {
	for more := true; more; {
		var err error
		if more, err = f.dropOne(); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) dropOne() (more bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(); err != nil {
		return false, err
	}
	segment := f.ring.oldest()
	if segment == nil {
		return false, f.ring.err()
	}
	if err := f.player.play(segment); err != nil {
		err = fmt.Errorf("recording: the recording has ended, because its decisions could not be repeated: %w", err)
		f.ring.end(err)
		return false, err
	}
	f.ring.recycle(segment)
	f.begins.Store(f.player.summary.To.UnixNano())
	return true, nil
}

// Resize changes the size that the recorder keeps, in bytes. It may be called by any goroutine, and so may End and Lost.
func (f *follower) Resize(limit int) { f.ring.resize(limit) }

// End ends the recording and frees its memory. The recorder must not get events any more.
func (f *follower) End() {
	f.ring.end(errEnded)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.player, f.capture, f.changes, f.ids = player{}, nil, graph.Changes{}, nil
}

// Lost reports whether the recording has ended: by End, or because it could not go on.
func (f *follower) Lost() bool { return f.ring.err() != nil }

// Window returns how far back the recording reaches; 0 if there is none, as with a nil Recorder.
func (r *Recorder) Window(now time.Time) time.Duration {
	if r == nil || r.ring.err() != nil {
		return 0
	}
	return max(0, now.Sub(time.Unix(0, r.begins.Load())))
}

// Bytes returns the recording as a file, up to the last Seal. The follower stands still while the file is made.
func (f *follower) Bytes() ([]byte, error) {
	f.mu.Lock() // keeps the segments from being dropped, and their memory from being used again
	defer f.mu.Unlock()
	if err := f.ready(); err != nil {
		return nil, err
	}
	segments, err := f.ring.all()
	if err != nil {
		return nil, err
	}
	checkpoint, err := f.checkpoints.Write(f.player.state)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	file := newFile(header{Base: f.player.base, Event: f.player.events, Config: f.config, Hidden: f.hidden})
	size := len(checkpoint) + 2*chunkHead
	for _, s := range segments {
		size += len(s) + chunkHead
	}
	file.out = slices.Grow(file.out, size)
	file.chunk(chunkCheckpoint, checkpoint)
	for _, s := range segments {
		file.chunk(chunkSegment, s)
	}
	file.chunk(chunkEnd, nil)
	return file.out, nil
}
