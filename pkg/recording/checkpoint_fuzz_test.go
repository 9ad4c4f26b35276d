package recording_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/recording"
)

// checkpointed is a recording with requests in its checkpoint, and what it takes to replay it.
type checkpointed struct {
	*driver
	line   []byte
	chunks [][]byte // the second is the checkpoint
	takes  uint64   // bytes allocated
}

func newCheckpointed(t testing.TB, seed uint64) *checkpointed {
	d := newDriver(t, seed, 1<<20, nil)
	for range 60 {
		d.step()
	}
	d.recorder.Seal()
	if err := d.recorder.DropAll(); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		d.step()
	}
	c := &checkpointed{driver: d}
	c.line, c.chunks = recording.Split(d.bytes())
	var err error
	if c.takes, err = c.reads(c.edited(0, nil, 0)); err != nil {
		t.Fatal(err)
	}
	return c
}

// head is the number of bytes of a chunk before its content, and of a checkpoint's before its values: who has written it.
const head, writer = 9, 8

// edited returns the recording with other bytes in its checkpoint, of which cut bytes are missing at the end, and with
// correct lengths and checksums.
func (c *checkpointed) edited(at uint32, with []byte, cut uint32) []byte {
	values := append([]byte{}, c.chunks[1][head+writer:]...)
	copy(values[int(at)%len(values):], with)
	values = values[:len(values)-int(cut)%len(values)]
	text := append([]byte{}, c.line...)
	for i, chunk := range c.chunks {
		if i != 1 {
			text = append(text, chunk...)
			continue
		}
		text = append(text, chunk[0])
		text = binary.BigEndian.AppendUint32(text, uint32(writer+len(values)))
		text = append(text, chunk[5:head+writer]...)
		text = append(text, values...)
	}
	return recording.Resum(text)
}

// reads replays and explains a recording and returns how many bytes that has allocated.
func (c *checkpointed) reads(text []byte) (made uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = c.replay(text)
	_, other := c.explain(text, "70")
	runtime.ReadMemStats(&after)
	if err == nil && other != nil && !strings.Contains(other.Error(), "70") {
		err = other
	}
	return after.TotalAlloc - before.TotalAlloc, err
}

// FuzzCheckpoint writes other bytes into a checkpoint, or cuts it off, and corrects every checksum. Reading it ends soon
// with a recording or with an error that says what is broken, and takes no more memory than another recording of its size.
func FuzzCheckpoint(f *testing.F) {
	var all []*checkpointed
	for seed := range uint64(4) {
		all = append(all, newCheckpointed(f, seed))
	}
	lot := rand.New(rand.NewPCG(5, 5))
	for which := range uint8(len(all)) {
		f.Add(which, uint32(0), []byte(nil), uint32(1)) // cut off
		f.Add(which, uint32(0), []byte(nil), lot.Uint32())
		for _, with := range [][]byte{
			{0},
			{1},
			{0x7f},
			{0xff},
			{0xff, 0x7f},
			{0, 0, 0, 0, 0, 0, 0, 0},
			{0xff, 0xff, 0xff, 0xff, 0x0f}, // 4 Gi
			{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, // the largest number
		} {
			f.Add(which, lot.Uint32(), with, uint32(0))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint32, with []byte, cut uint32) {
		c := all[int(which)%len(all)]
		text := c.edited(at, with, cut)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			made, err := c.reads(text)
			if most := 8*c.takes + 64<<20; made > most {
				t.Errorf("%d bytes were allocated, want at most %d", made, most)
			}
			if err != nil && !inItsWords(err) {
				t.Errorf("%q, want an error that says what is broken", err)
			}
		}()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Error("reading has not ended")
		}
	})
}

// inItsWords reports whether an error says that it is about a recording, or is a difference at an event.
func inItsWords(err error) bool {
	var d *recording.Difference
	return errors.As(err, &d) || strings.HasPrefix(err.Error(), "the recording's checkpoint: ") ||
		strings.HasPrefix(err.Error(), "recording: broken")
}
