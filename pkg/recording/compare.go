package recording

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
)

// Difference is the error at the first event of a replay whose result differs from the recorded one.
type Difference struct {
	// Event is the event's number, from 1. At is its time; zero if it has none.
	Event uint64
	At    time.Time
	// Kind is the event's kind in words; Recorded and Replayed are its two results.
	Kind, Recorded, Replayed string
}

// Error implements error.
func (d *Difference) Error() string {
	at := ""
	if !d.At.IsZero() {
		at = " at " + d.At.UTC().Format(time.RFC3339Nano)
	}
	return decision.Printable(fmt.Sprintf("event %d (%s%s): recorded: %s; replayed: %s", d.Event, d.Kind, at, d.Recorded, d.Replayed))
}

// differs returns the Difference at the current event.
func (p *player) differs(recorded, replayed string) error {
	return &Difference{p.events, p.now, p.kind.String(), recorded, replayed}
}

// compare reads a verdict's record and compares it with the machine's next verdict.
func (p *player) compare() error {
	if err := p.unexpected(); err != nil {
		return err
	}
	number := p.in.number()
	recorded := p.in.ruling()
	if p.in.broken {
		return errBroken
	}
	w := p.verdictOn(p.compared)
	p.compared++
	if w == nil {
		return p.differs(recorded.of(fmt.Sprint(number)), "no further verdict")
	}
	replayed := rulingOn(w)
	if w.Number() != number || replayed != recorded {
		return p.differs(recorded.of(fmt.Sprint(number)), replayed.of(p.name(w)))
	}
	p.summary.Verdicts++
	r := p.requests[number]
	if p.watch != nil {
		p.watch.decided(r, replayed)
	}
	if replayed.stage == dispatch.StageEnded {
		delete(p.requests, number)
	}
	return nil
}

// end checks that the current event has no results besides the recorded ones.
func (p *player) end() error {
	if err := p.unexpected(); err != nil {
		return err
	}
	if p.kind == 0 {
		return nil
	}
	if p.machine.Preemptor() != nil {
		return p.differs("no waiter that could preempt", "request "+p.name(p.machine.Preemptor()))
	}
	if w := p.verdictOn(p.compared); w != nil {
		return p.differs("no further verdict", rulingOn(w).of(p.name(w)))
	}
	p.kind = 0
	return nil
}

// unexpected returns the Difference of a panic that was not recorded, or nil.
func (p *player) unexpected() error {
	if p.panicked != nil {
		return p.differs("no panic", p.panicked.Error())
	}
	return nil
}

// verdictOn returns the request of the current event's i-th verdict, or nil if there are fewer.
func (p *player) verdictOn(i int) *dispatch.Waiter {
	if p.own != nil {
		if i == 0 {
			return p.own.Waiter
		}
		i--
	}
	if !p.kind.hasVerdicts() {
		return nil
	}
	if others := p.machine.Verdicts(); i < len(others) {
		return others[i]
	}
	return nil
}

// hasVerdicts reports whether an event of this kind can have verdicts.
func (k kind) hasVerdicts() bool { return k != told && k != firstByte && k != refuse && k != noted }

// name returns a request's number and, if it has one, its ID.
func (p *player) name(w *dispatch.Waiter) string {
	if r := p.requests[w.Number()]; r != nil && r.id != "" {
		return fmt.Sprintf("%d (%s)", w.Number(), r.id)
	}
	return fmt.Sprint(w.Number())
}
