package recording

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Replay reads a recording and repeats it on a machine and a board of its own. The error is a *Difference at the first
// event with another result than the recorded one.
//
// The writer of the file may have forged its checkpoint, which is the memory of a machine. Values in it that no machine
// can have may make Replay use time and memory without bound, so a caller that does not know the file's origin must bound
// both.
func (f *Format) Replay(in io.Reader) (Summary, error) {
	p, file, err := f.open(in)
	if err != nil {
		return Summary{}, err
	}
	err = p.playAll(file)
	return p.summary, err
}

// Summary is the result of a replay without a difference.
type Summary struct {
	// From and To are the times of the first and the last event that have one.
	From, To time.Time
	Events   uint64
	Arrivals uint64
	// Verdicts is the number of verdicts that were compared.
	Verdicts uint64
}

// add counts an event.
func (s *Summary) add(now time.Time) {
	s.Events++
	if now.IsZero() {
		return
	}
	if s.From.IsZero() {
		s.From = now
	}
	s.To = now
}

// player repeats the events of a recording on a machine and compares its verdicts.
type player struct {
	*state
	base   time.Time // to which times in segments are relative
	in     reader
	events uint64 // number of events until now, including those before the recording
	now    time.Time

	summary Summary

	// The current event.
	kind     kind
	own      *request // whom it is about, if its verdict is recorded
	compared int      // number of its verdicts that were compared
	panicked error    // its panic, until a record of the panic is read

	atPrefill *scheduling.Ratings // of the next arrival, if its record comes before that
	ring      string              // and these, likewise
	prompt    fairqueue.Prompt
	tenant    string // whose quota counts it
	uses      int64
	role      string

	watch watcher  // may be nil
	copy  *renamer // gets the records with renamed keys; may be nil
}

// watcher is told each step of a player.
type watcher interface {
	// arrived is called for each arrival, before the machine decides on it.
	arrived(r *request, a *dispatch.Arrival)
	// refusedEarly is called for each request that was refused before it arrived.
	refusedEarly(r *dispatch.Refusal)
	// event is called for each event, before the machine handles it.
	event()
	// about is called for each event about a request that is known already, before the machine handles it.
	about(r *request)
	// completed is called for each cost that a complete request turns out to have, fairqueue.UnknownCost among them.
	completed(w *dispatch.Waiter, cost fairqueue.Cost)
	// expected is called for each cost that a request in flight is taken to have, before the machine handles it.
	expected(w *dispatch.Waiter, cost fairqueue.Cost)
	// pool is called for each change of the endpoints, after the machine has handled it.
	pool(ready []stock.Backend, foreign []stock.Foreign)
	// reported is called for each report of an engine, before the machine handles it.
	reported(e dispatch.Endpoint, s dispatch.Signals)
	// configured is called for each change of the configuration, after the machine has handled it.
	configured(d dispatch.Config, s scheduling.Config)
	// decided is called for each verdict that was as recorded.
	decided(r *request, v ruling)
}

// errBroken is the error of a segment that cannot be read.
var errBroken = errors.New("recording: broken")

// open returns a player in the state of the file's checkpoint.
func (f *Format) open(in io.Reader) (*player, *fileReader, error) {
	file, err := openFile(in)
	if err != nil {
		return nil, nil, err
	}
	checkpoints, err := f.checkpoints(file.header.Config)
	if err != nil {
		return nil, nil, err
	}
	s, err := restore(checkpoints, file.checkpoint)
	if err != nil {
		return nil, nil, fmt.Errorf("the recording's checkpoint: %w", err)
	}
	file.checkpoint = nil
	return &player{state: s, base: file.header.Base, events: file.header.Event}, file, nil
}

// playAll plays the segments of a file.
func (p *player) playAll(file *fileReader) error {
	for {
		segment, err := file.segment()
		if segment == nil || err != nil {
			return err
		}
		if err := p.play(segment); err != nil {
			return err
		}
	}
}

// play repeats one segment. If it panics outside of the machine, the segment has values that contracts forbid, such as two
// endpoints with one address: it is broken.
func (p *player) play(segment []byte) (err error) {
	defer p.contain(&err)
	p.in = reader{in: segment, copy: p.copy}
	for p.in.more() {
		k, now := p.in.next(p.base)
		if err := p.record(k, now); err != nil {
			return err
		}
		if p.in.broken {
			return fmt.Errorf("%w: event %d (%s)", errBroken, p.events, k)
		}
	}
	if p.in.broken {
		return errBroken
	}
	return p.end()
}

// contain recovers from a panic and sets the error.
func (p *player) contain(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%w: event %d (%s): %s", errBroken, p.events, p.kind, decision.Printable(fmt.Sprint(v)))
	}
}

// record repeats one record.
func (p *player) record(k kind, now time.Time) error {
	if k == verdict {
		return p.compare()
	}
	if k.follows() {
		return p.resume(k, now)
	}
	if err := p.end(); err != nil {
		return err
	}
	if k.precedes() {
		return p.begin(k, now)
	}
	p.events++
	p.summary.add(now)
	p.kind, p.now, p.own, p.compared = k, now, nil, 0
	return p.begin(k, now)
}
