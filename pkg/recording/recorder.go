package recording

import (
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Recorder records the events of one machine, each before the machine handles it, and the machine's verdicts after it.
// All methods except Run and Bytes must be called under the lock of the machine's owner.
type Recorder struct {
	segment
	board *scheduling.Board
	hide  func(string) string  // returns the text to record for a key; nil for the key itself
	own   *dispatch.Waiter     // the current event's request, if its verdict is recorded
	pool  *scheduling.Snapshot // the last recorded snapshot

	*follower // has a lock of its own
}

// event begins the record of an event. A full segment ends first.
func (r *Recorder) event(k kind, now time.Time) {
	if len(r.buf) >= segmentSize {
		r.Seal()
	}
	r.own = nil
	r.begin(k, now)
}

// Seal ends the current segment, so that Bytes includes it.
func (r *Recorder) Seal() {
	if len(r.buf) > 0 {
		r.restart(r.ring.push(r.buf))
	}
}

// about begins the record of an event about w.
func (r *Recorder) about(k kind, now time.Time, w *dispatch.Waiter) {
	r.event(k, now)
	r.number(w.Number())
}

// Arrive records an arrival or, with passedOn, a request that does not queue. id is the request's ID in logs, or empty.
func (r *Recorder) Arrive(now time.Time, w *dispatch.Waiter, a dispatch.Arrival, id string, passedOn bool) {
	k := arrive
	if passedOn {
		k = passOn
	}
	q, placed := a.Placement.(*scheduling.Query)
	placed = placed && q != nil
	first := r.event
	before := func(k kind) { // all in the same segment
		first(k, time.Time{})
		first = r.begin
	}
	if placed && q.AtPrefill() != nil {
		before(rated)
		r.ratings(q.AtPrefill())
	}
	if p := a.Path; p != nil && (p.Ring != "" || p.Prompt != fairqueue.Prompt{}) {
		before(prompted)
		r.text(p.Ring, nil)
		r.signed(int64(p.Prompt.Raw))
		r.signed(int64(p.Prompt.Cached))
	}
	if a.Tenant != "" {
		before(metered)
		r.text(a.Tenant, r.hide)
		r.signed(a.Uses)
	}
	if p := a.Path; p != nil && p.Role != "" {
		before(titled)
		r.text(p.Role, nil)
	}
	first(k, now)
	r.own = w
	flags := len(r.buf)
	r.buf = append(r.buf, 0)
	r.text(a.Flow, r.hide)
	r.signed(int64(a.Tier))
	r.signed(int64(a.Cost))
	if a.Tokens != 0 {
		r.buf[flags] |= hasTokens
		r.signed(int64(a.Tokens))
	}
	if a.TierName != "" {
		r.buf[flags] |= hasTierName
		r.text(a.TierName, nil)
	}
	if p := a.Path; p != nil {
		r.buf[flags] |= hasPath
		r.text(p.Class, nil)
		r.signed(int64(p.Strict))
		r.signed(int64(p.Priority))
		r.number(uint64(len(p.Under)))
		for _, key := range p.Under {
			r.text(key, r.hide)
		}
	}
	if !a.Deadline.IsZero() {
		r.buf[flags] |= hasDeadline
		r.signed(int64(a.Deadline.Sub(r.base)) - r.last)
	}
	if placed {
		r.buf[flags] |= isPlaced
		recalled := q.Recalled()
		r.constraint(recalled)
		if recalled.Ratings != nil {
			r.buf[flags] |= isRated
			r.ratings(recalled.Ratings)
		}
	}
	r.buf[flags] |= r.id(id)
}

// ratings writes the ratings of a request's prompt before its arrival.
func (r *Recorder) ratings(ratings *scheduling.Ratings) {
	if ratings.Watched {
		r.signed(^ratings.Prompt)
	} else {
		r.signed(ratings.Prompt)
	}
	r.signed(ratings.Floor)
	r.number(uint64(len(ratings.Above)))
	for _, c := range ratings.Above {
		r.signed(int64(c.ID))
		r.signed(c.Tokens)
	}
	r.number(uint64(len(ratings.Near)))
	for _, id := range ratings.Near {
		r.signed(int64(id))
	}
}

// Told records that the stream of a granted request has learned its destination.
func (r *Recorder) Told(w *dispatch.Waiter) {
	if w.Stage() == dispatch.StageGranted {
		r.about(told, time.Time{}, w)
	}
}

// Cancel records that a request's client has gone or its deadline has passed. A Cancel without effect is not recorded.
func (r *Recorder) Cancel(now time.Time, w *dispatch.Waiter, o dispatch.Outcome) {
	if w.Stage() != dispatch.StageWaiting && w.Stage() != dispatch.StageGranted {
		r.nothing()
		return
	}
	r.about(cancel, now, w)
	r.own = w
	r.number(uint64(o))
}

// nothing is called instead of event for an event that has no effect, and so is not recorded.
func (r *Recorder) nothing() { r.own = nil }

// FirstByte records that an answer's headers go on to the client.
func (r *Recorder) FirstByte(l *dispatch.Lease) {
	if w := l.Waiter(); w.Stage() == dispatch.StageSent {
		r.about(firstByte, time.Time{}, w)
	}
}

// Prefilled records that a prefill engine has read a prompt.
func (r *Recorder) Prefilled(now time.Time, l *dispatch.Lease) {
	w := l.Waiter()
	if w.Stage() == dispatch.StageEnded || !l.Prefills() && !l.Reads() {
		r.nothing()
		return
	}
	r.about(prefilled, now, w)
}

// ServedElsewhere records that another endpoint than the picked one answered the request.
func (r *Recorder) ServedElsewhere(now time.Time, l *dispatch.Lease, e dispatch.Endpoint, status int) {
	w := l.Waiter()
	if w.Stage() == dispatch.StageEnded {
		r.nothing()
		return
	}
	r.about(served, now, w)
	r.signed(int64(e))
	r.signed(int64(status))
}

// Complete records that a lease is settled.
func (r *Recorder) Complete(now time.Time, l *dispatch.Lease, cost fairqueue.Cost) {
	w := l.Waiter()
	if w.Stage() == dispatch.StageEnded {
		r.nothing()
		return
	}
	r.about(complete, now, w)
	r.signed(int64(cost))
}

// Answered records that a lease is settled, and its engine's answer.
func (r *Recorder) Answered(now time.Time, l *dispatch.Lease, cost fairqueue.Cost, a dispatch.Answer) {
	w := l.Waiter()
	if w.Stage() == dispatch.StageEnded {
		r.nothing()
		return
	}
	r.about(answered, now, w)
	r.signed(int64(cost))
	r.number(uint64(a.Status))
	r.number(uint64(a.RetryAfter))
}

// Backends records a change of the endpoints, with the foreign stock there. The board must have the new endpoints
// already.
func (r *Recorder) Backends(now time.Time, ready []stock.Backend, foreign []stock.Foreign) {
	r.event(backends, now)
	r.change()
	r.number(uint64(len(ready)))
	for _, b := range ready {
		r.signed(int64(b.ID))
		r.signed(int64(b.Slots))
		r.signed(int64(b.MaxTokens))
	}
	r.others(foreign)
}

// Foreign records the foreign stock at some of the backends.
func (r *Recorder) Foreign(now time.Time, changes []stock.Foreign) {
	r.event(foreign, now)
	r.others(changes)
}

// others writes the foreign stock at some of the backends.
func (r *Recorder) others(changes []stock.Foreign) {
	r.number(uint64(len(changes)))
	for _, f := range changes {
		r.signed(int64(f.ID))
		r.signed(int64(f.Held.Requests))
		r.signed(int64(f.Held.Tokens))
	}
}

// Signals records an engine's report of itself.
func (r *Recorder) Signals(now time.Time, e dispatch.Endpoint, s dispatch.Signals) {
	r.event(signals, now)
	r.signed(int64(e))
	for _, n := range [...]int64{
		int64(s.Running), int64(s.Waiting), int64(s.CacheUsed), s.CacheTokens, s.Preemptions, s.Produced, int64(s.Slots),
	} {
		r.signed(n)
	}
	flags, unloaded := uint64(0), s.Unloaded != r.board.UnloadedBy(e)
	if s.Known {
		flags |= isKnown
	}
	if s.StatesUtilised {
		flags |= isUtilised
	}
	if unloaded {
		flags |= isUnloaded
	}
	if r.number(flags); s.StatesUtilised {
		r.signed(int64(s.Utilised))
	}
	if unloaded {
		r.unloaded(s.Unloaded)
	}
	same := s.Adapters == r.board.AdapterState(e)
	if r.flag(same); same {
		return
	}
	if r.flag(s.Adapters != nil); s.Adapters == nil {
		return
	}
	r.number(uint64(s.Adapters.Places))
	r.number(uint64(len(s.Adapters.Loaded)))
	for _, name := range s.Adapters.Loaded {
		r.text(name, nil)
	}
}

// unloaded writes an engine's statement of models that are not loaded.
func (r *Recorder) unloaded(s *scheduling.Unloaded) {
	if r.flag(s != nil); s == nil {
		return
	}
	r.number(uint64(len(s.Models)))
	for _, name := range s.Models {
		r.text(name, nil)
	}
}

// Raise records that the cost or the tokens of a request in flight are raised.
func (r *Recorder) Raise(now time.Time, l *dispatch.Lease, to fairqueue.Cost, tokens stock.Tokens) {
	r.cost(raised, now, l, to, tokens)
}

// TrueUp records the actual cost and tokens of a request in flight.
func (r *Recorder) TrueUp(now time.Time, l *dispatch.Lease, to fairqueue.Cost, tokens stock.Tokens) {
	r.cost(trueUp, now, l, to, tokens)
}

// Used records the tokens that a request has used of its tenant's quota.
func (r *Recorder) Used(now time.Time, l *dispatch.Lease, tokens int64) {
	w := l.Waiter()
	if w.Lease() == nil {
		r.nothing()
		return
	}
	r.about(used, now, w)
	r.signed(tokens)
}

func (r *Recorder) cost(k kind, now time.Time, l *dispatch.Lease, to fairqueue.Cost, tokens stock.Tokens) {
	w := l.Waiter()
	if w.Lease() == nil {
		r.nothing()
		return
	}
	r.about(k, now, w)
	r.signed(int64(to))
	r.signed(int64(tokens))
}

// Configure records a change of the configuration. The board must have the new scheduler already.
func (r *Recorder) Configure(now time.Time, cfg dispatch.Config) {
	r.event(configure, now)
	r.bytes(configurationText(r.hidden(cfg), r.board.Scheduler().Config()))
}

// Drain records that the machine rejects everything from now on.
func (r *Recorder) Drain(now time.Time) { r.event(drain, now) }

// Advance records that the timer has fired.
func (r *Recorder) Advance(now time.Time) { r.event(advance, now) }

// Preempt records that the preemptor's client is still there.
func (r *Recorder) Preempt(now time.Time) { r.begin(preempt, now) }

// PreemptorGone records that the preemptor's client has gone, with outcome o.
func (r *Recorder) PreemptorGone(now time.Time, o dispatch.Outcome) {
	r.begin(gone, now)
	r.number(uint64(o))
}

// Failed records that the event has panicked.
func (r *Recorder) Failed(now time.Time) { r.begin(failed, now) }

// NoteFailure records an event's panic outside the machine.
func (r *Recorder) NoteFailure() { r.event(noted, time.Time{}) }

// Verdicts records the results of the event: first for its own request, then for others.
func (r *Recorder) Verdicts(others []*dispatch.Waiter) {
	if r.own != nil {
		r.verdict(r.own)
		r.own = nil
	}
	for _, w := range others {
		r.verdict(w)
	}
}

// verdict writes the verdict on a request.
func (r *Recorder) verdict(w *dispatch.Waiter) {
	r.buf = append(r.buf, byte(verdict))
	r.number(w.Number())
	r.ruling(rulingOn(w))
}
