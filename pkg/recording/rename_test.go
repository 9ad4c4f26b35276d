package recording_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/recording"
)

// A recording with names, renamed, is the one that a recorder makes that hides them: no name is in it, a replay has the same
// verdicts, and each request has the same story.
func TestRename(t *testing.T) {
	hidden := strings.NewReplacer("flow-", "FLOW-", "user-", "USER-").Replace // of the same length, for segments of the same size
	for seed := range lives {
		plain, hiding := newDriver(t, seed, recording.SegmentSize, nil), newDriver(t, seed, recording.SegmentSize, hidden)
		for i := range 2500 {
			plain.step()
			hiding.step()
			if i%100 != 99 {
				continue
			}
			for _, d := range []*driver{plain, hiding} {
				if err := d.recorder.Drop(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		}
		text := plain.bytes()
		if !bytes.Contains(text, []byte("flow-")) {
			t.Fatalf("seed %d: no name is in the original", seed)
		}
		renamed, err := plain.format.Rename(text, hidden)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if bytes.Contains(renamed, []byte("flow-")) || bytes.Contains(renamed, []byte("user-")) {
			t.Errorf("seed %d: a name is in it", seed)
		}
		want := hiding.bytes()
		got, err := plain.replay(renamed)
		if other, err2 := plain.replay(want); err != nil || err2 != nil || got != other {
			t.Errorf("seed %d: a replay has %+v, %v; want %+v, %v", seed, got, err, other, err2)
		}
		said, err := plain.format.History(bytes.NewReader(renamed))
		if other, err2 := plain.format.History(bytes.NewReader(want)); err != nil || err2 != nil || !reflect.DeepEqual(said, other) {
			t.Errorf("seed %d: the requests differ: %v, %v", seed, err, err2)
		}
		if again, err := plain.format.Rename(renamed, strings.ToLower); err != nil || !bytes.Equal(again, renamed) {
			t.Errorf("seed %d: hidden names are hidden again: %v", seed, err)
		}
		if _, err := plain.format.Rename(text[:len(text)-1], hidden); err == nil {
			t.Errorf("seed %d: a truncated recording has no error", seed)
		}
	}
}
