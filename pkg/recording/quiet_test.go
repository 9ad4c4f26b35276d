package recording_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// newQuietDriver returns a driver of a machine with one endpoint of one slot and two tiers, without random events. Each
// event is a millisecond after the one before.
func newQuietDriver(t *testing.T) *driver {
	t.Helper()
	return newQuietDriverOf(t, func(*dispatch.Config) {})
}

// newQuietDriverOf is newQuietDriver with a changed configuration.
func newQuietDriverOf(t testing.TB, change func(*dispatch.Config)) *driver {
	t.Helper()
	d := &driver{t: t, lot: rand.New(rand.NewPCG(1, 1)), now: start, counts: map[string]int{}, config: dispatch.DefaultConfig()}
	d.config.Queue.Tiers = []fairqueue.TierConfig{{Name: "critical", QueueSize: -1}, {Name: "default", QueueSize: -1}}
	d.config.Tiers, d.config.EnqueueAll = make([]dispatch.TierConfig, 2), true
	d.config.Stock.SlotsPerBackend = 1
	change(&d.config)
	var err error
	if d.format, err = recording.NewFormat(placement.On(nil)); err != nil {
		t.Fatal(err)
	}
	if d.scheduler, err = scheduling.New(scheduling.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	d.board = scheduling.NewBoard(d.scheduler, nil)
	if d.machine, err = dispatch.New(d.config, placement.On(d.board), rand.New(rand.NewPCG(1, 3))); err != nil {
		t.Fatal(err)
	}
	d.record(1<<20, nil)
	d.snapshot = scheduling.NewSnapshot(1, []scheduling.Endpoint{
		{ID: 0, Address: "10.0.0.1:80", Ready: true},
	})
	d.board.SetSnapshot(d.snapshot)
	ready := []stock.Backend{{ID: 0}}
	d.recorder.Backends(d.now, ready, nil)
	d.call(func() { d.machine.SetBackends(d.now, ready, nil) })
	return d
}

// anywhere returns the placement of a request that may use any endpoint.
func (d *driver) anywhere() dispatch.Placement {
	d.t.Helper()
	q, err := d.scheduler.Prepare(d.snapshot, scheduling.Ask{})
	if err != nil {
		d.t.Fatal(err)
	}
	return q
}

// arriveAs makes a request of a flow and a tier arrive, with an ID.
func (d *driver) arriveAs(flow string, tier int, name string) *life {
	d.t.Helper()
	return d.offered(dispatch.Arrival{Flow: flow, Tier: tier, Cost: 1, Placement: d.anywhere()}, name)
}

func (d *driver) complete(l *life) {
	d.recorder.Told(&l.Waiter)
	d.machine.Told(&l.Waiter)
	d.recorder.Complete(d.now, l.Lease(), fairqueue.UnknownCost)
	d.call(func() { d.machine.Complete(d.now, l.Lease(), fairqueue.UnknownCost) })
	d.now = d.now.Add(time.Millisecond)
}

// completeSome completes a request in flight.
func (d *driver) completeSome() {
	if l := d.some(dispatch.StageGranted, dispatch.StageSent); l != nil {
		d.complete(l)
	}
}
