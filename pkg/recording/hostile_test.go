package recording_test

import (
	"testing"

	"github.com/weir-epp/weir/pkg/recording"
)

// TestManyReadersTakeNoMemory: each reading ends a segment, however short it is. The recording holds no more memory for it.
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
	if _, err := d.format.Replay(d.bytes()); err != nil {
		t.Error(err)
	}
}
