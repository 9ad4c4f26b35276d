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
