package simulate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// decider is the deciding part, made as in epp, with a clock.
type decider struct {
	machine   *dispatch.Machine
	board     *scheduling.Board
	scheduler *scheduling.Scheduler

	now   time.Time
	timer time.Time // zero: nothing is due

	recorder *recording.Recorder // nil: nothing is recorded
	lowered  []lowered
}

// lowered is a request charged less, because part of its prompt is expected in its engine's cache.
type lowered struct {
	of   *dispatch.Waiter
	cost fairqueue.Cost
}

// lower notes a lower charge for a request granted in the current event; correct applies it.
func (d *decider) lower(of *dispatch.Waiter, cost fairqueue.Cost) {
	d.lowered = append(d.lowered, lowered{of, cost})
}

// correct applies the lower charges. Each correction is an event, which may release other requests.
func (d *decider) correct(carryOut func()) {
	for i := 0; i < len(d.lowered); i++ {
		d.trueUp(d.lowered[i].of.Granted(), d.lowered[i].cost)
		carryOut()
	}
	d.lowered = d.lowered[:0]
}

// mostRecorded is the size in bytes beyond which a simulation's recording loses its beginning.
const mostRecorded = 1 << 30

// record starts recording, before the first event.
func (d *decider) record(cfg *dispatch.Config) error {
	format, err := recording.NewFormat(placement.On(nil))
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if d.recorder, err = format.New(*cfg, mostRecorded, nil); err == nil {
		err = d.recorder.Begin(epoch, d.machine, d.board, *cfg, nil)
	}
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return nil
}

// recorded returns the recording as a file.
func (d *decider) recorded() ([]byte, error) {
	d.recorder.Seal()
	return d.recorder.Bytes()
}

// The machine's events, each recorded before it is handled.

func (d *decider) arrive(w *dispatch.Waiter, a *dispatch.Arrival) {
	if d.recorder != nil {
		d.recorder.Arrive(d.now, w, *a, strconv.FormatUint(d.machine.Arrived()+1, 10), false)
	}
	d.machine.Arrive(d.now, w, *a)
}

func (d *decider) told(w *dispatch.Waiter) {
	if d.recorder != nil {
		d.recorder.Told(w)
	}
	d.machine.Told(w)
}

func (d *decider) firstByte(l *dispatch.Lease) {
	if d.recorder != nil {
		d.recorder.FirstByte(l)
	}
	d.machine.FirstByte(l)
}

func (d *decider) trueUp(l *dispatch.Lease, cost fairqueue.Cost) {
	if d.recorder != nil {
		d.recorder.TrueUp(d.now, l, cost, 0)
	}
	d.machine.TrueUp(d.now, l, cost, 0)
}

func (d *decider) used(l *dispatch.Lease, tokens int64) {
	if d.recorder != nil {
		d.recorder.Used(d.now, l, tokens)
	}
	d.machine.Used(d.now, l, tokens)
}

func (d *decider) complete(l *dispatch.Lease, cost fairqueue.Cost) {
	if d.recorder != nil {
		d.recorder.Complete(d.now, l, cost)
	}
	d.machine.Complete(d.now, l, cost)
}

func (d *decider) advance() {
	if d.recorder != nil {
		d.recorder.Advance(d.now)
	}
	d.machine.Advance(d.now)
}

func (d *decider) setBackends(next *scheduling.Snapshot, ready []stock.Backend, foreign []stock.Foreign) {
	d.board.SetSnapshot(next)
	if d.recorder != nil {
		d.recorder.Backends(d.now, ready, foreign)
	}
	d.machine.SetBackends(d.now, ready, foreign)
}

func (d *decider) setSignals(e dispatch.Endpoint, s dispatch.Signals) {
	if d.recorder != nil {
		d.recorder.Signals(d.now, e, s)
	}
	d.machine.SetSignals(d.now, e, s)
}

// make makes the machine and its board, without endpoints.
func (d *decider) make(cfg *dispatch.Config, placing scheduling.Config, seed uint64) (err error) {
	if d.scheduler, err = scheduling.New(placing); err != nil {
		return fmt.Errorf("simulate: scheduling: %w", err)
	}
	d.board = scheduling.NewBoard(d.scheduler, rand.New(rand.NewPCG(seed, 1)))
	if d.machine, err = dispatch.New(*cfg, placement.On(d.board), rand.New(rand.NewPCG(seed, 2))); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	d.now = epoch
	return nil
}

// confirm ends an event: it confirms to the machine that the preemptors' clients are still there, and records the
// verdicts.
func (d *decider) confirm() {
	for d.machine.Preemptor() != nil {
		if d.recorder != nil {
			d.recorder.Preempt(d.now)
		}
		d.machine.Preempt(d.now)
	}
	if d.recorder != nil {
		d.recorder.Verdicts(d.machine.Verdicts())
	}
}

// setTimer sets the timer like the controller: it only moves it forward.
func (d *decider) setTimer() {
	left, waits := d.machine.Next(d.now)
	if !waits {
		d.timer = time.Time{}
	} else if at := d.now.Add(left); d.timer.IsZero() || at.Before(d.timer) {
		d.timer = at
	}
}

// atRest returns an error if the machine has anything left.
func (d *decider) atRest() error {
	state := d.machine.State()
	if state.Queued != 0 || state.Stock != 0 || state.LiveFlows != 0 || state.Panics != 0 {
		return fmt.Errorf("simulate: at the end the machine has %d queued, %d in flight and %d live flows after %d panics",
			state.Queued, state.Stock, state.LiveFlows, state.Panics)
	}
	return nil
}
