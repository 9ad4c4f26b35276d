package recording_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// Whatever happens, a replay has the same verdicts, event by event.
func TestReplayComesToTheSame(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(20) {
		d := newDriver(t, seed, 1<<20, nil)
		for range 3000 {
			d.step()
		}
		summary, err := d.replay(d.bytes())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if summary.Events < 2000 || summary.Verdicts < 500 || summary.Arrivals < 500 || !summary.To.After(summary.From) {
			t.Fatalf("seed %d: %+v", seed, summary)
		}
		for what, n := range d.counts {
			counts[what] += n
		}
	}
	for _, must := range []string{"preempted", "displaced", "ttl-expired", "deadline-exceeded", "no-endpoint"} {
		if counts["5 "+must] < 20 {
			t.Errorf("%d requests ended as %s: the runs are too tame", counts["5 "+must], must)
		}
	}
}

// How much the longest tests try: less under the race detector.
var (
	lives     = uint64(20) // of TestRestoreGoesOn
	oneByteOf = 3          // is changed by TestChangedByteIsNoticed
	explained = uint64(2)  // one request of so many, by TestExplain
)

// A recording that has dropped its beginning starts with a checkpoint, from which a replay has the same verdicts, with
// reloads and changes of the pool.
func TestRestoreGoesOn(t *testing.T) {
	for seed := range lives {
		d := newDriver(t, seed, recording.SegmentSize, nil)
		for i := range 6000 {
			d.step()
			if i%100 == 0 {
				if err := d.recorder.Drop(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, i, err)
				}
			}
		}
		text := d.bytes()
		if n := len(recording.Chunks(text, 's')); n > 3 {
			t.Errorf("seed %d: %d segments are kept", seed, n)
		}
		summary, err := d.replay(text)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if summary.Events > 5000 {
			t.Fatalf("seed %d: nothing was dropped: %+v", seed, summary)
		}
	}
}

// FuzzRecord does both with a random run.
func FuzzRecord(f *testing.F) {
	f.Add(uint64(1), uint16(500), false)
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16, drop bool) {
		d := newDriver(t, seed, recording.SegmentSize, nil)
		for range steps % 400 {
			d.step()
		}
		if drop {
			if err := d.recorder.Drop(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.replay(d.bytes()); err != nil {
			t.Fatal(err)
		}
	})
}

// A changed byte of an event breaks its checksum. If the checksum is corrected, the replay notices the change: always
// in a verdict, and otherwise if it has an effect. The name of a request in logs, a millisecond of a request that nobody
// waited for, or a token where there is room, has none: that is half of them.
func TestChangedByteIsNoticed(t *testing.T) {
	d := newDriver(t, 7, 1<<20, nil)
	for range 500 {
		d.step()
	}
	text := d.bytes()
	segments := recording.Chunks(text, 's')
	if len(segments) != 1 {
		t.Fatalf("%d segments", len(segments))
	}
	verdicts := map[int]bool{}
	for _, span := range d.verdicts {
		for at := span[0]; at < span[1]; at++ {
			verdicts[segments[0][0]+at] = true
		}
	}
	oneOf := oneByteOf
	if testing.Short() {
		oneOf *= 5 // make random tries all
	}
	lot, passed, n := rand.New(rand.NewPCG(1, 1)), 0, 0
	for at := segments[0][0]; at < segments[0][1]; at++ {
		if lot.IntN(oneOf) > 0 || !verdicts[at] && lot.IntN(20) > 0 {
			continue
		}
		changed := bytes.Clone(text)
		changed[at] ^= 1 << lot.IntN(8)
		if _, err := d.replay(changed); err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Fatalf("byte %d: its checksum does not notice: %v", at, err)
		}
		switch _, err := d.replay(recording.Resum(changed)); {
		case verdicts[at] && err == nil:
			t.Errorf("byte %d, of a verdict, is not noticed", at)
		case !verdicts[at]:
			n++
			if err == nil {
				passed++
			}
		}
	}
	if passed > n*3/5 {
		t.Errorf("%d of %d changes of events are not noticed", passed, n)
	}
}

// A replay ends at the first event with another result, and says what it was.
func TestDifferenceSaysWhere(t *testing.T) {
	d := newDriver(t, 7, 1<<20, nil)
	for range 500 {
		d.step()
	}
	text := d.bytes()
	segment := recording.Chunks(text, 's')[0]
	for at := segment[0] + 1000; ; at++ {
		changed := bytes.Clone(text)
		changed[at]++
		_, err := d.replay(recording.Resum(changed))
		var difference *recording.Difference
		if !errors.As(err, &difference) {
			continue
		}
		if difference.Event == 0 || difference.Kind == "" || difference.Recorded == "" || difference.Replayed == "" {
			t.Errorf("%+v", difference)
		}
		return
	}
}

// Broken files are refused.
func TestBrokenFiles(t *testing.T) {
	d := newDriver(t, 7, 1<<20, nil)
	for range 50 {
		d.step()
	}
	text := d.bytes()
	for _, c := range []struct {
		name, want string
		text       []byte
	}{
		{"nothing", "not a recording", nil},
		{"another file", "not a recording", []byte("GET / HTTP/1.1")},
		{"cut off", "cut off", text[:len(text)-5]},
		{"without its end", "cut off", text[:len(text)-9]},
		{"with something after its end", "broken", append(bytes.Clone(text), 1)},
	} {
		if _, err := d.replay(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A flow is hidden too if a model has its name, which is not.
func TestNameOfAFlowAndAModel(t *testing.T) {
	d := newDriver(t, 3, recording.SegmentSize, func(name string) string { return "hidden " + strings.TrimPrefix(name, "flow-") })
	d.recorder.Refuse(d.now, &dispatch.Refusal{Flow: "flow-1", Model: "flow-77", Outcome: dispatch.OutcomeTooLarge})
	d.recorder.Refuse(d.now, &dispatch.Refusal{Flow: "flow-77", Model: "m", Outcome: dispatch.OutcomeTooLarge})
	if text := d.bytes(); bytes.Count(text, []byte("flow-77")) != 1 || !bytes.Contains(text, []byte("hidden 77")) {
		t.Error("the flow is named, or the model is not")
	}
}

// With hide, no key of a flow is in a recording, neither from an arrival nor from a configuration, and the recording
// can be replayed.
func TestNamesAreHidden(t *testing.T) {
	d := newDriver(t, 3, recording.SegmentSize, func(name string) string { return "hidden " + strings.TrimPrefix(name, "flow-") })
	for range 3000 {
		d.step()
	}
	for range 2 {
		text := d.bytes()
		if bytes.Contains(text, []byte("flow-")) || !bytes.Contains(text, []byte("hidden 1")) {
			t.Error("a flow is named")
		}
		if _, err := d.replay(text); err != nil {
			t.Fatal(err)
		}
		if err := d.recorder.Drop(); err != nil {
			t.Fatal(err)
		}
	}
}
