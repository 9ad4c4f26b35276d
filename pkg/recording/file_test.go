package recording_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/recording"
)

// A file whose chunks are in another order, repeated, left out or of unknown kinds is refused, even if somebody has corrected
// the checksums. So is one without correct checksums.
func TestFileHasItsOrder(t *testing.T) {
	d := newQuietDriver(t)
	d.advanced(20) // two segments
	text := d.bytes()
	line, chunks := recording.Split(text)
	header, checkpoint, first, second, end := chunks[0], chunks[1], chunks[2], chunks[3], chunks[len(chunks)-1]
	unknown := slices.Concat([]byte{'x'}, first[1:])
	for _, test := range []struct {
		name   string
		chunks [][]byte
		want   string
	}{
		{"without a header", [][]byte{checkpoint, first, second, end}, "chunk 0 of the recording is broken"},
		{"without a checkpoint", [][]byte{header, first, second, end}, "chunk 1 of the recording is broken"},
		{"a second header", [][]byte{header, checkpoint, first, header, end}, "chunk 3 of the recording is broken"},
		{"a second checkpoint", [][]byte{header, checkpoint, checkpoint, first, end}, "chunk 2 of the recording is broken"},
		{"an unknown chunk", [][]byte{header, checkpoint, first, unknown, end}, "chunk 3 of the recording is broken: its kind is unknown"},
		{"without an end", [][]byte{header, checkpoint, first, second}, "cut off"},
		{"two ends", [][]byte{header, checkpoint, first, second, end, end}, "data follow its end"},
	} {
		changed := slices.Concat(line, bytes.Join(test.chunks, nil))
		if _, err := d.replay(recording.Resum(changed)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	for name, chunks := range map[string][][]byte{
		"a segment left out": {header, checkpoint, first, end},
		"swapped segments":   {header, checkpoint, second, first, end},
		"a segment twice":    {header, checkpoint, first, first, second, end},
	} {
		changed := slices.Concat(line, bytes.Join(chunks, nil))
		if _, err := d.replay(changed); err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for kind := range chunks { // the kind and the length count too
		for _, at := range []int{0, 4} {
			changed := bytes.Clone(text)
			changed[len(line)+len(bytes.Join(chunks[:kind], nil))+at] ^= 1
			if _, err := d.replay(changed); err == nil {
				t.Errorf("chunk %d with byte %d changed is read", kind, at)
			}
		}
	}
}

// A chunk that announces more than any recorder writes is refused before it is read.
func TestFileHasBounds(t *testing.T) {
	d := newQuietDriver(t)
	line, chunks := recording.Split(d.bytes())
	for i, most := range []uint32{64 << 20, 1 << 30, 64 << 20, 0} {
		changed := slices.Concat(line, bytes.Join(chunks, nil))
		at := len(line) + len(bytes.Join(chunks[:i], nil))
		binary.BigEndian.PutUint32(changed[at+1:], most)
		if _, err := d.replay(changed); err != nil && strings.Contains(err.Error(), "more than") {
			t.Errorf("chunk %d of %d bytes: %v", i, most, err)
		}
		binary.BigEndian.PutUint32(changed[at+1:], most+1)
		if _, err := d.replay(changed); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("chunk %d of %d bytes: %v", i, most+1, err)
		}
	}
}
