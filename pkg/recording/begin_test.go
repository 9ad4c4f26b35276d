package recording_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/recording"
)

// hidden hides the names of flows, and of users, as a test sees them.
func hidden(name string) string {
	return "hidden " + strings.NewReplacer("flow-", "", "user-", "user ").Replace(name)
}

// A recording may begin at any moment, with requests waiting and in flight: whatever happens to them later, a replay has the
// same verdicts, and so has the follower. It may end and begin again. With hidden keys, no name is in it.
func TestRecordingBeginsAtAnyMoment(t *testing.T) {
	waiting, inFlight := 0, 0
	for seed := range lives {
		d := newDriver(t, seed, recording.SegmentSize, nil)
		for run := range 4 {
			for range 100 + d.lot.IntN(500) {
				d.step()
			}
			hide := hidden
			if run%2 == 0 {
				hide = nil
			}
			s := d.machine.State()
			waiting, inFlight = waiting+s.Queued, inFlight+s.Stock
			d.record(recording.SegmentSize, hide)
			for i := range 1500 {
				d.step()
				if i%100 != 99 {
					continue
				}
				if err := d.recorder.Drop(); err != nil {
					t.Fatalf("seed %d, run %d, step %d: %v", seed, run, i, err)
				}
				if i != 499 && i != 1499 {
					continue
				}
				text := d.bytes()
				if _, err := d.replay(text); err != nil {
					t.Fatalf("seed %d, run %d, step %d: %v", seed, run, i, err)
				}
				if hide != nil && (bytes.Contains(text, []byte("flow-")) || bytes.Contains(text, []byte("user-"))) {
					t.Fatalf("seed %d, run %d: a name is in it", seed, run)
				}
			}
		}
	}
	if n := int(lives) * 4; waiting < 3*n || inFlight < 3*n {
		t.Errorf("%d waited and %d were in flight when %d recordings began: the runs are too tame", waiting, inFlight, n)
	}
}

// A recording begins and ends, again and again, while requests come, wait and go in other goroutines: each replay has the same
// verdicts, and nothing runs on after the end.
func TestRecordingBeginsUnderLoad(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.Queue.Discipline, cfg.Queue.QueueTTL = fairqueue.FairShare, 20*time.Millisecond
	cfg.Stock.WatermarkPerBackend = 1
	r := newRunningOf(t, cfg, false)
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = r.controller.Run(ctx) })
	served := make(chan struct{}, 100)
	for worker := range 40 {
		work.Go(func() {
			lot := rand.New(rand.NewPCG(1, uint64(worker)))
			for i := worker; ctx.Err() == nil; i++ {
				life, leave := context.WithTimeout(ctx, time.Duration(1+lot.IntN(20))*time.Millisecond)
				lease, err := r.controller.TryEnqueue(life, r.request(i))
				leave()
				if err != nil {
					continue
				}
				_ = lease.OnFirstByte()
				for range lot.IntN(50) {
					runtime.Gosched()
				}
				lease.OnRequestComplete(flowcontrol.Completion{Status: 200, Cost: fairqueue.Cost(1 + lot.IntN(3))})
				select {
				case served <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	for run := range 10 {
		r.record(t, cfg.Config, recording.SegmentSize)
		recorder, ended := r.recorder, make(chan error, 1)
		go func() { ended <- recorder.Run(ctx) }()
		for range 500 {
			<-served
		}
		r.controller.Look(recorder.Seal)
		text, err := recorder.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if s, err := r.format.Replay(bytes.NewReader(text)); err != nil || s.Arrivals == 0 {
			t.Errorf("run %d: %+v %v", run, s, err)
		}
		r.controller.StopRecording()
		recorder.End()
		if err := <-ended; err != nil {
			t.Errorf("run %d: %v", run, err)
		}
		if n := recorder.Memory(); n > 0 {
			t.Errorf("run %d: %d bytes are held after the end", run, n)
		}
	}
	stop()
	work.Wait()
}

// The times of a machine have readings of the monotonic clock, which a replay has not. So a recording that begins after the
// system's clock was set has the same verdicts at the same times nevertheless.
func TestRecordingBeginsAfterTheClockWasSet(t *testing.T) {
	defer func(was time.Time) { start = was }(start)
	now := time.Now()
	start = anHourBehind(now)
	if now.Sub(start) != 0 || now.Round(0).Sub(start.Round(0)) != time.Hour {
		t.Fatalf("%v and %v: the system's clock alone must differ", now, start)
	}
	const ttl = 10 * time.Second
	d := newQuietDriverOf(t, func(c *dispatch.Config) { c.Queue.QueueTTL = ttl })
	d.arriveAs("a", 1, "holder")
	arrived := d.now.Sub(start)
	d.arriveAs("a", 1, "waits")
	d.now = now.Add(time.Second)
	d.record(1<<20, nil)
	for _, after := range []time.Duration{ttl - 1, ttl} {
		d.now = now.Add(arrived + after)
		d.recorder.Advance(d.now)
		d.call(func() { d.machine.Advance(d.now) })
	}
	text := d.bytes()
	if _, err := d.replay(text); err != nil {
		t.Error(err)
	}
	if said, err := d.explain(text, "waits"); err != nil || !strings.Contains(said, "It ended as ttl-expired after 10s in the queue.") {
		t.Errorf("%v\n%s", err, said)
	}
}

// anHourBehind returns the time as it would be if the system's clock were set an hour ahead afterwards.
func anHourBehind(t time.Time) time.Time {
	const seconds = 30 // the first bit of the seconds of a time with a monotonic reading
	*(*uint64)(unsafe.Pointer(&t)) -= 3600 << seconds
	return t
}
