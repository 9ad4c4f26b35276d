package recording

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/graph"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// follower keeps the last segments, and the state at their beginning: whenever a segment is dropped, it plays it on a
// machine of its own. So a checkpoint is there at any time without anybody holding the lock for it, and a machine that
// does not do the same again is noticed at once.
type follower struct {
	checkpoints *graph.Codec
	config      dispatch.Config // that the machine began with
	ring        *ring
	mu          sync.Mutex // over ring: guards player
	player      player
}

// Record returns a recorder of the machine, which must have seen no request yet, and of the board that it places on. It
// keeps about limit bytes. hide, if not nil, gives the text that a flow's key is written as, the same in arrivals and in
// configurations.
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
	r.follower = &follower{checkpoints: checkpoints, config: cfg, ring: newRing(limit), player: player{state: s, base: now.Round(0).UTC()}}
	r.restart(make([]byte, 0, segmentSize+segmentSize/8))
	if hide != nil { // so that no name is in a checkpoint
		if err := s.machine.Configure(now, cfg); err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
	}
	return r, nil
}

// Run drops what is beyond the limit until ctx is over. It returns early, with the reason, when the recording has ended.
func (f *follower) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.ring.wake:
		}
		if err := f.drop(); err != nil {
			return err
		}
	}
}

// drop drops segments until no more are beyond the limit.
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
	return true, nil
}

// Bytes returns the recording as a file, up to the last Seal.
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
	file := newFile(header{Base: f.player.base, Event: f.player.events, Config: f.config})
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
