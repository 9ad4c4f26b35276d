package recording

import (
	"context"
	"errors"
	"fmt"
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
	mu          sync.Mutex   // over ring: guards player
	player      player
}

// Record returns a recorder for machine m, which must not have had a request yet, and for the board on which it places
// requests. The recorder keeps about limit bytes. If hide is not nil, it returns the text to record for a flow's key,
// in arrivals and in configurations.
func (f *Format) Record(
	m *dispatch.Machine, board *scheduling.Board, cfg dispatch.Config, limit int, now time.Time, hide func(string) string,
) (*Recorder, error) {
	r := &Recorder{segment: *newSegment(now), board: board, hide: hide, pool: board.Snapshot()}
	cfg = r.hidden(cfg)
	checkpoints, err := f.checkpoints(cfg)
	if err != nil {
		return nil, err
	}
	first, err := checkpoints.Write(&state{machine: m, board: board, requests: map[uint64]*request{}})
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	s, err := restore(checkpoints, first)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	r.follower = &follower{
		checkpoints: checkpoints, config: cfg, hidden: hide != nil, ring: newRing(limit),
		player: player{state: s, base: now.Round(0).UTC()},
	}
	r.begins.Store(now.UnixNano())
	r.follower.ring.reserve()
	r.restart(newBuffer())
	if hide != nil { // so that no name is in a checkpoint
		if err := s.machine.Configure(now, cfg); err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
	}
	return r, nil
}

// Run drops segments beyond the limit until ctx is done. If the recording ends before, it returns the reason.
func (f *follower) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.ring.wake:
		}
		switch err := f.drop(); {
		case errors.Is(err, errEnded):
			return nil
		case err != nil:
			return err
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
	segment := f.ring.oldest()
	if segment == nil {
		return false, f.ring.err()
	}
	if err := f.player.play(segment); err != nil {
		err = fmt.Errorf("recording: the recording has ended, since it could not be repeated: %w", err)
		f.ring.end(err)
		return false, err
	}
	f.ring.recycle(segment)
	f.begins.Store(f.player.summary.To.UnixNano())
	return true, nil
}

// Resize changes the size that the recorder keeps, in bytes. It may be called by any goroutine, and so may End and Ended.
func (f *follower) Resize(limit int) { f.ring.resize(limit) }

// End ends the recording and frees its memory. The recorder must not get events any more.
func (f *follower) End() {
	f.ring.end(errEnded)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.player = player{}
}

// Ended reports whether End was called.
func (f *follower) Ended() bool { return errors.Is(f.ring.err(), errEnded) }

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
