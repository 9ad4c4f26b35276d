package flowcontrol

import (
	"iter"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Recorder records every event before the machine handles it (Refuse after it, with its result), and the verdicts at the
// end of the event. Its methods are called under the lock.
type Recorder interface {
	Arrive(now time.Time, w *dispatch.Waiter, a dispatch.Arrival, id string, passedOn bool)
	Told(w *dispatch.Waiter)
	Cancel(now time.Time, w *dispatch.Waiter, o Outcome)
	FirstByte(l *dispatch.Lease)
	Prefilled(now time.Time, l *dispatch.Lease)
	ServedElsewhere(now time.Time, l *dispatch.Lease, e Endpoint, status int)
	Complete(now time.Time, l *dispatch.Lease, cost fairqueue.Cost)
	Answered(now time.Time, l *dispatch.Lease, cost fairqueue.Cost, a dispatch.Answer)
	Refuse(now time.Time, r *dispatch.Refusal)
	Backends(now time.Time, ready []stock.Backend, foreign []stock.Foreign)
	Foreign(now time.Time, changes []stock.Foreign)
	Signals(now time.Time, e Endpoint, s dispatch.Signals)
	Raise(now time.Time, l *dispatch.Lease, to fairqueue.Cost, tokens stock.Tokens)
	TrueUp(now time.Time, l *dispatch.Lease, to fairqueue.Cost, tokens stock.Tokens)
	Used(now time.Time, l *dispatch.Lease, tokens int64)
	Configure(now time.Time, cfg dispatch.Config)
	Drain(now time.Time)
	Advance(now time.Time)
	Preempt(now time.Time)
	PreemptorGone(now time.Time, o Outcome)
	Failed(now time.Time)
	NoteFailure()
	Verdicts(others []*dispatch.Waiter)
}

// Start begins a recording, under the lock, of the machine with its configuration. live yields the requests that have not
// ended, and their IDs.
type Start func(m *dispatch.Machine, cfg dispatch.Config, live iter.Seq2[*dispatch.Waiter, string]) (Recorder, error)

// Record starts recording with the Recorder that start returns.
func (c *RequestQueueController) Record(start Start) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	recorder, err := start(c.machine.Machine, c.config.Config, c.live.all)
	if err != nil {
		return err
	}
	c.machine.recorder = recorder
	c.records.Store(true)
	return nil
}

// StopRecording ends the recording.
func (c *RequestQueueController) StopRecording() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.recorder = nil
	c.records.Store(false)
}

// machine is a dispatch.Machine whose events are recorded.
type machine struct {
	*dispatch.Machine
	recorder Recorder // nil if nothing is recorded
}

func (m *machine) Told(w *dispatch.Waiter) {
	if m.recorder != nil {
		m.recorder.Told(w)
	}
	m.Machine.Told(w)
}

func (m *machine) Cancel(now time.Time, w *dispatch.Waiter, o Outcome) {
	if m.recorder != nil {
		m.recorder.Cancel(now, w, o)
	}
	m.Machine.Cancel(now, w, o)
}

func (m *machine) FirstByte(l *dispatch.Lease) (goesOn bool) {
	if m.recorder != nil {
		m.recorder.FirstByte(l)
	}
	return m.Machine.FirstByte(l)
}

func (m *machine) Prefilled(now time.Time, l *dispatch.Lease) {
	if m.recorder != nil {
		m.recorder.Prefilled(now, l)
	}
	m.Machine.Prefilled(now, l)
}

func (m *machine) ServedElsewhere(now time.Time, l *dispatch.Lease, e Endpoint, status int) {
	if m.recorder != nil {
		m.recorder.ServedElsewhere(now, l, e, status)
	}
	m.Machine.ServedElsewhere(now, l, e, status)
}

func (m *machine) Complete(now time.Time, l *dispatch.Lease, cost fairqueue.Cost) (settled bool) {
	if m.recorder != nil {
		m.recorder.Complete(now, l, cost)
	}
	return m.Machine.Complete(now, l, cost)
}

func (m *machine) Answered(now time.Time, l *dispatch.Lease, cost fairqueue.Cost, a dispatch.Answer) (settled bool) {
	if m.recorder != nil {
		m.recorder.Answered(now, l, cost, a)
	}
	return m.Machine.Answered(now, l, cost, a)
}

func (m *machine) Refuse(now time.Time, r *dispatch.Refusal) {
	r.RetryAfter = m.Machine.Refuse(now, r.Outcome)
	if m.recorder != nil {
		m.recorder.Refuse(now, r)
	}
}

func (m *machine) SetBackends(now time.Time, ready []stock.Backend, foreign []stock.Foreign) {
	if m.recorder != nil {
		m.recorder.Backends(now, ready, foreign)
	}
	m.Machine.SetBackends(now, ready, foreign)
}

func (m *machine) SetForeign(now time.Time, changes []stock.Foreign) {
	if m.recorder != nil {
		m.recorder.Foreign(now, changes)
	}
	m.Machine.SetForeign(now, changes)
}

func (m *machine) SetSignals(now time.Time, e Endpoint, s dispatch.Signals) {
	if m.recorder != nil {
		m.recorder.Signals(now, e, s)
	}
	m.Machine.SetSignals(now, e, s)
}

func (m *machine) Raise(now time.Time, l *dispatch.Lease, to fairqueue.Cost, tokens stock.Tokens) {
	if m.recorder != nil {
		m.recorder.Raise(now, l, to, tokens)
	}
	m.Machine.Raise(now, l, to, tokens)
}

func (m *machine) TrueUp(now time.Time, l *dispatch.Lease, to fairqueue.Cost, tokens stock.Tokens) {
	if m.recorder != nil {
		m.recorder.TrueUp(now, l, to, tokens)
	}
	m.Machine.TrueUp(now, l, to, tokens)
}

func (m *machine) Used(now time.Time, l *dispatch.Lease, tokens int64) {
	if m.recorder != nil {
		m.recorder.Used(now, l, tokens)
	}
	m.Machine.Used(now, l, tokens)
}

func (m *machine) Configure(now time.Time, cfg dispatch.Config) error {
	if m.recorder != nil {
		m.recorder.Configure(now, cfg)
	}
	return m.Machine.Configure(now, cfg)
}

func (m *machine) Drain(now time.Time) {
	if m.recorder != nil {
		m.recorder.Drain(now)
	}
	m.Machine.Drain(now)
}

func (m *machine) Advance(now time.Time) {
	if m.recorder != nil {
		m.recorder.Advance(now)
	}
	m.Machine.Advance(now)
}

func (m *machine) Preempt(now time.Time) {
	if m.recorder != nil {
		m.recorder.Preempt(now)
	}
	m.Machine.Preempt(now)
}

func (m *machine) PreemptorGone(now time.Time, o Outcome) {
	if m.recorder != nil {
		m.recorder.PreemptorGone(now, o)
	}
	m.Machine.PreemptorGone(now, o)
}

func (m *machine) Failed(now time.Time, failure error) {
	if m.recorder != nil {
		m.recorder.Failed(now)
	}
	m.Machine.Failed(now, failure)
}

func (m *machine) NoteFailure() {
	if m.recorder != nil {
		m.recorder.NoteFailure()
	}
	m.Machine.NoteFailure()
}

// recordVerdicts records the results of the current event.
func (m *machine) recordVerdicts() {
	if m.recorder != nil {
		m.recorder.Verdicts(m.Verdicts())
	}
}
