package recording_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// advanced records n firings of the timer, ten to a segment.
func (d *driver) advanced(n int) {
	for i := range n {
		d.recorder.Advance(d.now)
		d.call(func() { d.machine.Advance(d.now) })
		d.now = d.now.Add(time.Millisecond)
		if i%10 == 9 {
			d.recorder.Seal()
		}
	}
}

// Run repeats and drops segments as they come, as soon as there are more than the limit, and ends with its context.
func TestRunKeepsTheRecordingAtItsSize(t *testing.T) {
	d := newDriver(t, 5, 64<<10, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.recorder.Run(ctx) }()
	for dropped := false; !dropped; runtime.Gosched() {
		d.advanced(1000)
		summary, err := d.replay(d.bytes())
		if err != nil {
			t.Fatal(err)
		}
		dropped = summary.From.After(start.Add(time.Second))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The file keeps as much as was asked for, and not much more.
func TestRecordingHasItsSize(t *testing.T) {
	const limit = 256 << 10
	d := newDriver(t, 6, limit, nil)
	for i := range 15_000 {
		d.step()
		if i%100 == 0 {
			if err := d.recorder.Drop(); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, size := d.bytes(), 0
	segments := recording.Chunks(text, 's')
	for _, s := range segments {
		size += s[1] - s[0]
	}
	if size < limit-2*recording.SegmentSize || size > limit+2*recording.SegmentSize {
		t.Errorf("%d KiB of events are kept, of %d KiB", size>>10, limit>>10)
	}
	for _, s := range segments[:len(segments)-1] {
		if n := s[1] - s[0]; n < recording.SegmentSize || n > recording.SegmentSize+recording.SegmentSize/8 {
			t.Errorf("a segment has %d bytes", n)
		}
	}
}

// Numbers and times of events are those since the recording began, whatever was dropped.
func TestEventsKeepTheirNumbers(t *testing.T) {
	d := newQuietDriver(t) // its first event sets the endpoints
	d.advanced(99)
	d.recorder.Seal()
	if err := d.recorder.DropAll(); err != nil {
		t.Fatal(err)
	}
	d.arriveAs("a", 0, "first")
	d.arriveAs("a", 0, "second")
	text := d.bytes()
	summary, err := d.replay(text)
	begins := start.Add(99 * time.Millisecond)
	want := recording.Summary{From: begins, To: begins.Add(time.Millisecond), Events: 2, Arrivals: 2, Verdicts: 2}
	if err != nil || summary != want {
		t.Errorf("%+v (%v), want %+v", summary, err, want)
	}
	segment := recording.Chunks(text, 's')[0]
	text[segment[1]-1]-- // the stage of the last verdict
	var difference *recording.Difference
	if _, err := d.replay(recording.Resum(text)); !errors.As(err, &difference) || difference.Event != 102 || !difference.At.Equal(want.To) {
		t.Errorf("%v, want a difference at event 102", err)
	}
}

// Once a recording has its size, it needs no further memory: the buffers of dropped segments are used again.
func TestFullRecordingMakesNoGarbage(t *testing.T) {
	d := newDriver(t, 5, 256<<10, nil)
	segment := func() {
		for before := d.recorder.Len(); d.recorder.Len() >= before; {
			before = d.recorder.Len()
			d.recorder.Drain(d.now)
			d.recorder.Verdicts(nil)
		}
		if err := d.recorder.Drop(); err != nil {
			t.Fatal(err)
		}
	}
	d.machine.Drain(d.now)
	for range 20 {
		segment()
	}
	if n := testing.AllocsPerRun(50, segment); n > 0 {
		t.Errorf("a segment costs %v allocations", n)
	}
}

// A machine that decides otherwise when its events are repeated ends the recording, with an error that names the event.
// Events go on, and Bytes returns the reason.
func TestDifferenceEndsTheRecording(t *testing.T) {
	d := newQuietDriver(t)
	ended := make(chan error)
	d.recorder.Cancel(d.now, &dispatch.Waiter{}, dispatch.OutcomeClientCancelled) // has no effect, and is not recorded
	d.arriveAs("a", 0, "first")
	d.machine.Drain(d.now) // which nobody records
	d.arriveAs("a", 0, "second")
	d.recorder.Seal()
	go func() { ended <- d.recorder.Run(t.Context()) }()
	d.recorder.Crowd()
	err := <-ended
	var difference *recording.Difference
	if !errors.As(err, &difference) || difference.Event != 3 || !strings.Contains(err.Error(), "the recording has ended") || !d.recorder.Lost() {
		t.Fatalf("Run has ended with %v", err)
	}
	for range 3 {
		d.advanced(10)
		if _, again := d.recorder.Bytes(); again == nil || again.Error() != err.Error() {
			t.Errorf("Bytes: %v", again)
		}
		if d.recorder.Memory() > 0 {
			t.Error("a recording that has ended holds memory")
		}
	}
	if again := d.recorder.Run(t.Context()); again == nil || again.Error() != err.Error() {
		t.Errorf("Run, once more: %v", again)
	}
}
