package recording_test

import (
	"context"
	"fmt"
	"iter"
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
	format     *recording.Format
	board      *scheduling.Board
	scheduler  *scheduling.Scheduler
	snapshot   *scheduling.Snapshot
	ids        []string
}

func newRunning(b testing.TB, recorded bool) *running {
	b.Helper()
	return newRunningBy(b, fairqueue.WFQ, recorded)
}

func newRunningBy(b testing.TB, discipline fairqueue.Discipline, recorded bool) *running {
	b.Helper()
	cfg := flowcontrol.DefaultConfig()
	cfg.Queue.Discipline = discipline
	cfg.Stock.WatermarkPerBackend = 100
	return newRunningOf(b, cfg, recorded)
}

func newRunningOf(b testing.TB, cfg flowcontrol.Config, recorded bool) *running {
	b.Helper()
	scheduler, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	r := &running{scheduler: scheduler, ids: requestIDs()}
	r.board = scheduling.NewBoard(scheduler, rand.New(rand.NewPCG(1, 2)))
	if r.controller, err = flowcontrol.New(cfg, placement.On(r.board), logr.Discard()); err != nil {
		b.Fatal(err)
	}
	if r.format, err = recording.NewFormat(placement.On(nil)); err != nil {
		b.Fatal(err)
	}
	if recorded {
		r.record(b, cfg.Config, 4<<20)
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
	r.controller.SetBackends(ready, nil, func() { r.board.SetSnapshot(r.snapshot) })
	return r
}

// record begins a recording.
func (r *running) record(b testing.TB, cfg dispatch.Config, limit int) {
	b.Helper()
	var err error
	if r.recorder, err = r.format.New(cfg, limit, nil); err != nil {
		b.Fatal(err)
	}
	err = r.controller.Record(func(
		m *dispatch.Machine, cfg dispatch.Config, live iter.Seq2[*dispatch.Waiter, string],
	) (flowcontrol.Recorder, error) {
		return r.recorder, r.recorder.Begin(time.Now(), m, r.board, cfg, live)
	})
	if err != nil {
		b.Fatal(err)
	}
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

// BenchmarkBegin measures how long the lock is held when a recording begins, with so many requests waiting, of 100 flows.
// The rest (New, and the follower's first state) is not measured.
func BenchmarkBegin(b *testing.B) {
	for _, waiters := range []int{0, 100, 500, 1000, 10_000} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			d := newQuietDriverOf(b, func(c *dispatch.Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 20_000, 200 })
			for i := range waiters {
				d.arriveAs(flows[i%len(flows)], 1, "")
			}
			if n := d.machine.Waiting(); n < waiters-1 {
				b.Fatalf("%d wait", n)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				r, err := d.format.New(d.config, 1<<20, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := r.Begin(d.now, d.machine, d.board, d.config, d.live); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
