package recording_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// Each reading ends a segment, however short. Even many readings do not make the recording hold more memory.
func TestManyReadersTakeNoMemory(t *testing.T) {
	const limit = 256 << 10
	d := newDriver(t, 5, limit, nil)
	for range 10_000 {
		d.recorder.Advance(d.now)
		d.machine.Advance(d.now)
		d.recorder.Seal()
		if err := d.recorder.Drop(); err != nil {
			t.Fatal(err)
		}
	}
	if held := d.recorder.Memory(); held > 2*limit+16*recording.SegmentSize {
		t.Errorf("%d KiB are held, of a recording of %d KiB", held>>10, limit>>10)
	}
	if _, err := d.replay(d.bytes()); err != nil {
		t.Error(err)
	}
}

// A checkpoint with changed bytes and correct checksums leads to an error or to another recording, and to nothing
// worse.
func TestHostileCheckpoints(t *testing.T) {
	d := newDriver(t, 9, 1<<20, nil)
	for range 60 { // so that there is a checkpoint with requests in it
		d.step()
	}
	d.recorder.Seal()
	if err := d.recorder.DropAll(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		d.step()
	}
	text := d.bytes()
	part := recording.Chunks(text, 'c')[0]
	lot, refused := rand.New(rand.NewPCG(3, 3)), 0
	const times = 100
	for range times {
		changed := bytes.Clone(text)
		for range 1 + lot.IntN(3) {
			changed[part[0]+8+lot.IntN(part[1]-part[0]-8)] = byte(lot.Uint32())
		}
		changed = recording.Resum(changed)
		_, err := d.replay(changed)
		if err != nil {
			refused++
		}
		_, _ = d.explain(changed, "70")
	}
	if refused < times/4 {
		t.Errorf("%d of %d are refused", refused, times)
	}
}

// A segment that announces a million things that it does not contain gets no memory for them.
func TestHostileCountsTakeNoMemory(t *testing.T) {
	d := newDriver(t, 9, 1<<20, nil)
	const rest = 4 << 20
	for name, head := range map[string][]byte{
		"ratings":   {0x81, 0, 0x30, 0, 1, 'f', 0, 0, 0, 0, 0, 0, 2, 0},
		"endpoints": {0x89, 0, 0},
	} {
		head = append(head, 0xff, 0xff, 0xff, 1) // 4 Mi - 1
		segment := append(head, bytes.Repeat([]byte{0xff}, rest)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := d.replay(recording.WithSegment(d.bytes(), segment))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("%s: %v", name, err)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 64<<20 {
			t.Errorf("%s: %d MiB were made for %d MiB", name, made>>20, rest>>20)
		}
	}
}

// Clients choose the IDs of requests, and Explain's text is read in a terminal.
func TestExplainPrintsNoControls(t *testing.T) {
	d := newDriver(t, 9, 1<<20, nil)
	const id = "\x1b]0;owned\a\u009b2J\nIt went at once."
	w := &life{}
	d.own = w
	arrival := dispatch.Arrival{Flow: "f", Cost: 1, Owner: w}
	d.recorder.Arrive(d.now, &w.Waiter, arrival, id, false)
	d.call(func() { d.machine.Arrive(d.now, &w.Waiter, arrival) })
	said, err := d.explain(d.bytes(), id)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(said, "\x1b\a\u009b") || strings.Contains(said, "\nIt went at once.\n") || !strings.Contains(said, `\x1b]0;owned`) {
		t.Errorf("%q", said)
	}
}
