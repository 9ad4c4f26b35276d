package recording_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// BenchmarkRecorded measures a request that bypasses the queue on a real board, without and with a recording, as they are
// shipped, for weights and for fair shares; and the recorder's part of it alone.
func BenchmarkRecorded(b *testing.B) {
	for name, discipline := range map[string]fairqueue.Discipline{"wfq": fairqueue.WFQ, "fairshare": fairqueue.FairShare} {
		for _, mode := range []string{"off", "on"} {
			b.Run(name+"/"+mode, func(b *testing.B) {
				r := newRunningBy(b, discipline, mode == "on")
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					r.life(b, i)
				}
			})
		}
	}
	b.Run("recorder", func(b *testing.B) {
		var err error
		d := newDriver(b, 1, 1<<20, nil)
		for len(d.alive) == 0 || d.some(dispatch.StageSent) == nil {
			d.step()
		}
		l := d.some(dispatch.StageSent)
		ids := requestIDs()
		a := dispatch.Arrival{Flow: "flow-1", Cost: 3}
		if a.Placement, err = d.scheduler.Prepare(d.snapshot, scheduling.Ask{}); err != nil {
			b.Fatal(err)
		}
		var times [1000]time.Time
		for i := range times {
			times[i] = start.Add(time.Duration(i) * time.Microsecond)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := 0; b.Loop(); i++ {
			now := times[i%len(times)]
			a.Flow = flows[i%len(flows)]
			d.recorder.Arrive(now, &l.Waiter, a, ids[i%len(ids)], false)
			d.recorder.Verdicts(nil)
			d.recorder.FirstByte(l.Lease())
			d.recorder.Complete(now, l.Lease(), fairqueue.UnknownCost)
			d.recorder.Verdicts(nil)
		}
	})
}

// BenchmarkFollower measures what the follower does for one such request once the recording is full, and what a checkpoint
// of 10,000 waiting requests takes.
func BenchmarkFollower(b *testing.B) {
	b.Run("request", func(b *testing.B) {
		r := newRunning(b, true)
		life := func(i int) { r.life(b, i) }
		for i := 0; b.Loop(); i++ {
			if i%4000 == 0 {
				b.StopTimer()
				for j := range 4000 {
					life(j)
				}
				r.controller.Look(r.recorder.Seal)
				b.StartTimer()
				if err := r.recorder.DropAll(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("checkpoint", func(b *testing.B) {
		d := newQuietDriverOf(b, func(c *dispatch.Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 20_000, 20_000 })
		for range 10_000 {
			d.arriveAs("a", 0, "")
		}
		d.recorder.Seal()
		if err := d.recorder.DropAll(); err != nil {
			b.Fatal(err)
		}
		size := 0
		for b.Loop() {
			size = len(d.bytes())
		}
		b.ReportMetric(float64(size), "bytes")
	})
}

var flows = func() (flows []string) {
	for i := range 100 {
		flows = append(flows, fmt.Sprintf("tenant-%d", i))
	}
	return flows
}()

func requestIDs() (ids []string) {
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("%08x-1234-4abc-8def-%012x", i*i*77_777, i*i*1234567))
	}
	return ids
}

// running is a controller over a board of ten endpoints.
type running struct {
	controller *flowcontrol.RequestQueueController
	recorder   *recording.Recorder
	scheduler  *scheduling.Scheduler
	snapshot   *scheduling.Snapshot
	ids        []string
}

func newRunning(b *testing.B, recorded bool) *running {
	b.Helper()
	return newRunningBy(b, fairqueue.WFQ, recorded)
}

func newRunningBy(b *testing.B, discipline fairqueue.Discipline, recorded bool) *running {
	b.Helper()
	cfg := flowcontrol.DefaultConfig()
	cfg.Queue.Discipline = discipline
	cfg.Stock.WatermarkPerBackend = 100
	scheduler, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	r := &running{scheduler: scheduler, ids: requestIDs()}
	board := scheduling.NewBoard(scheduler, rand.New(rand.NewPCG(1, 2)))
	if r.controller, err = flowcontrol.New(cfg, placement.On(board), logr.Discard()); err != nil {
		b.Fatal(err)
	}
	if recorded {
		format, err := recording.NewFormat(placement.On(nil))
		if err != nil {
			b.Fatal(err)
		}
		err = r.controller.Record(func(m *dispatch.Machine, cfg dispatch.Config) (flowcontrol.Recorder, error) {
			var err error
			r.recorder, err = format.Record(m, board, cfg, 4<<20, time.Now(), nil)
			return r.recorder, err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	var endpoints []scheduling.Endpoint
	var ready []stock.Backend
	for id := range 10 {
		endpoints = append(endpoints, scheduling.Endpoint{
			ID: scheduling.EndpointID(id), Address: fmt.Sprintf("10.0.0.%d:80", id+1), Ready: true,
		})
		ready = append(ready, stock.Backend{ID: stock.BackendID(id)})
	}
	r.snapshot = scheduling.NewSnapshot(1, endpoints)
	r.controller.SetBackends(ready, nil, func() { board.SetSnapshot(r.snapshot) })
	return r
}

func (r *running) request(i int) *flowcontrol.Request {
	q, err := r.scheduler.Prepare(r.snapshot, scheduling.Ask{})
	if err != nil {
		panic(err)
	}
	return &flowcontrol.Request{Flow: flows[i%len(flows)], Model: "m", TargetModel: "m", Cost: 1, Placement: q, ID: r.ids[i%len(r.ids)]}
}

// life takes a request from its arrival to its end.
func (r *running) life(b *testing.B, i int) {
	lease, err := r.controller.TryEnqueue(context.Background(), r.request(i))
	if err != nil {
		b.Fatal(err)
	}
	if err := lease.OnFirstByte(); err != nil {
		b.Fatal(err)
	}
	lease.OnRequestComplete(flowcontrol.Completion{Status: 200})
}
