package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// A recording may come from anywhere, and its checkpoint is the memory of a machine: a forged one can make the replay
// run for ever, or use unbounded memory. So the replay of each piece of a file has bounds.
const (
	pieceTimeout = time.Minute // a piece takes less than a second; explain takes longer than replay
	// The largest heap, in bytes, is memoryPerByte for each byte read plus fixedMemory.
	memoryPerByte, fixedMemory = 32, 1 << 30
	mostStack                  = 128 << 20 // bytes
	memoryCheck                = 50 * time.Millisecond
)

var replayBounds = bounds{pieceTimeout, fixedMemory}

var errForged = errors.New("the recording is broken, or forged")

// bounds are bounds of a replay.
type bounds struct {
	timeout time.Duration // for each piece
	memory  uint64        // in addition to memoryPerByte for each byte
}

// recordingPage is where epp's debug port has its recording.
const recordingPage = "/debug/recording"

// replayed calls replay with a recording, from a file, an epp's debug port or standard input (source). If the replay
// exceeds the bounds, replayed returns an error while replay still runs, so the program must end.
func (b bounds) replayed(name string, replay func(in io.Reader) error) error {
	in, err := source(context.Background(), name, recordingPage)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	r := &pieces{in: in}
	r.last.Store(math.MaxInt64)
	return b.watched(r, func() error { return replay(r) })
}

// within calls replay, whose recording of size bytes is in memory: a single piece. If it exceeds the bounds, within returns
// an error while replay still runs.
func (b bounds) within(size int, replay func() error) error {
	r := &pieces{}
	r.read.Store(uint64(size))
	r.last.Store(time.Now().UnixNano())
	return b.watched(r, replay)
}

// watched calls replay, which reads r.
func (b bounds) watched(r *pieces, replay func() error) error {
	debug.SetMaxStack(mostStack) // a deeper recursion ends the program
	ended := make(chan error, 1)
	go func() { ended <- replay() }()
	tick := time.NewTicker(memoryCheck)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case now := <-tick.C:
			if last := r.last.Load(); now.UnixNano() > last && now.UnixNano()-last > int64(b.timeout) {
				return fmt.Errorf("%w: its replay makes no progress for %v after byte %d", errForged, b.timeout, r.read.Load())
			}
			if most := b.memory + memoryPerByte*r.read.Load(); heap() > most {
				return fmt.Errorf("%w: its replay needs more than %d MiB after byte %d", errForged, most>>20, r.read.Load())
			}
		}
	}
}

// heap returns the size of the heap in bytes.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// pieces counts the bytes read, and notes the times. Waiting for the input does not count as time of the replay.
type pieces struct {
	in   io.Reader
	read atomic.Uint64
	last atomic.Int64 // when the last piece was read, in Unix nanoseconds; in the future while the reader waits
}

// Read implements io.Reader.
func (p *pieces) Read(b []byte) (int, error) {
	p.last.Store(math.MaxInt64)
	n, err := p.in.Read(b)
	p.read.Add(uint64(n))
	p.last.Store(time.Now().UnixNano())
	return n, err
}
