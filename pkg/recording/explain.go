package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Explained is the explanation of one request.
type Explained struct {
	// Story tells in words the state at the request's arrival, the reasons for its wait, the requests that went first
	// and by which right, its flow's entitled and attained share, and the reason for its endpoint.
	Story string
	// Record is its decision record, as written to the sink in production.
	Record decision.Record
}

// Request names a request of a recording: by its ID in logs, or its number in the recording.
type Request struct {
	ID     string
	Number uint64 // 0: by its ID, or by a number in ID
}

// is reports whether q names the request with this number and ID.
func (q Request) is(number uint64, id string) bool {
	if q.Number != 0 {
		return q.Number == number
	}
	return q.ID != "" && (q.ID == id || q.ID == strconv.FormatUint(number, 10))
}

// Explain explains requests of a recording, in the given order. It replays the recording, and returns the error if the
// replay differs. Replay's warning about forged files applies.
func (f *Format) Explain(in io.Reader, requests ...Request) (explained []Explained, err error) {
	p, file, err := f.open(in)
	if err != nil {
		return nil, err
	}
	defer p.contain(&err)
	var all crowd
	for _, q := range requests {
		e := &explanation{player: p, named: q, waiting: newWaiting()}
		all = append(all, e)
		e.findEarlier()
	}
	p.watch = all
	if err := p.playAll(file); err != nil {
		return nil, err
	}
	for i, e := range all {
		x, err := e.(*explanation).result()
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", cmp.Or(requests[i].ID, strconv.FormatUint(requests[i].Number, 10)), err)
		}
		explained = append(explained, x)
	}
	return explained, nil
}

// result returns the story and the record.
func (e *explanation) result() (Explained, error) {
	switch {
	case e.request == nil && e.refused != nil:
		return *e.refused, nil
	case e.request == nil:
		return Explained{}, errUnknownRequest
	case e.request.Stage() == dispatch.StageWaiting:
		e.sayWait()
		e.say("When the recording ends it still waits.")
		e.record = e.recordOf(decision.Waiting)
	}
	e.sayOthers()
	for i := range e.lines {
		e.lines[i] = decision.Printable(e.lines[i])
	}
	return Explained{Story: strings.Join(e.lines, "\n") + "\n", Record: e.record}, nil
}

var errUnknownRequest = errors.New("the recording has no such request: name it by its x-request-id or its number")

// explanation watches a player for one request.
type explanation struct {
	*player
	named   Request
	request *request   // nil until it has arrived
	refused *Explained // the first of this name refused before arrival, if none has arrived
	others  []uint64   // numbers of further requests with its ID; 0 for refused ones
	since   time.Time  // its arrival; zero: before the recording begins
	waits   bool
	taker   uint64 // the event that preempted it, until the request that took its place is known
	waiting waiting
	lines   []string
	record  decision.Record
}

// say adds a line.
func (e *explanation) say(format string, args ...any) {
	e.lines = append(e.lines, fmt.Sprintf(format, args...))
}

// findEarlier finds the request if it arrived before the recording begins.
func (e *explanation) findEarlier() {
	var earlier []*request
	for _, r := range e.requests {
		if e.named.is(r.Number(), r.id) {
			earlier = append(earlier, r)
		}
	}
	slices.SortFunc(earlier, func(a, b *request) int { return cmp.Compare(a.Number(), b.Number()) })
	for _, r := range earlier {
		if e.request != nil {
			e.others = append(e.others, r.Number())
			continue
		}
		e.request = r
		if e.waits = r.Stage() == dispatch.StageWaiting; e.waits {
			r.Explain()
			r.watch()
		}
		e.say("Request %s of flow %q, tier %s, arrived before the recording begins.", e.called(r), r.Flow(), e.tierName(r.Tier()))
	}
}

// watch makes the board keep a view of the request's next placement.
func (r *request) watch() {
	if r.query != nil {
		r.query.Watch()
	}
}

// recordOf returns the record of the request, for which there is a verdict.
func (e *explanation) recordOf(outcome string) decision.Record {
	r := e.request
	d := decision.Record{ID: r.id, Outcome: outcome}
	if f := r.Facts(); f != nil {
		if d.Facts = *f; d.Limit != nil {
			d.Limit.Holders = e.machine.HoldersOf(d.Limit)
		}
	} else {
		d.Facts = dispatch.Facts{Number: r.Number(), Flow: r.Flow(), Tier: e.tierName(r.Tier()), Cost: int64(r.Cost()), Waited: r.Waited().Seconds()}
	}
	if r.query == nil {
		return d
	}
	d.Model = r.query.Recalled().Model
	if d.Placement = r.query.Explained(); d.Placement != nil {
		d.Endpoint = d.Placement.Chosen
	}
	return d
}

// sayOthers mentions further requests with the same ID, such as retries.
func (e *explanation) sayOthers() {
	if len(e.others) == 0 || e.named.Number != 0 {
		return
	}
	var numbers []string
	refused := 0
	for _, n := range e.others {
		switch {
		case n == 0:
			refused++
		case len(numbers) < mostNamed:
			numbers = append(numbers, strconv.FormatUint(n, 10))
		}
	}
	e.say("The recording has %d more of this ID: %d were refused before they arrived, and the others have the numbers %s, by which "+
		"--request explains them.", len(e.others), refused, cmp.Or(strings.Join(numbers, ", "), "of none"))
}

// called returns a request's number and ID.
func (e *explanation) called(r *request) string { return e.player.name(r.Waiter) }

func (e *explanation) tierName(id int) string {
	for _, t := range e.machine.Tiers(nil) {
		if t.ID == id {
			return t.Name
		}
	}
	return strconv.Itoa(id)
}

// arrived tells the request's demands and the state at its arrival.
func (e *explanation) arrived(r *request, a *dispatch.Arrival) {
	number := e.machine.Arrived() + 1
	if !e.named.is(number, r.id) {
		return
	}
	if e.request != nil {
		e.others = append(e.others, number)
		return
	}
	e.request, e.since = r, e.now
	a.Explain = true
	r.watch()
	e.say("Request %s arrived at %s: flow %q%s, cost %d, %s.", cmp.Or(e.named.ID, strings.TrimSpace(fmt.Sprintf("%d %s", number, inBrackets(r.id)))),
		e.now.UTC().Format(time.RFC3339Nano), a.Flow, e.userIn(a.Path), max(1, a.Cost), asks(a))
	if !a.Deadline.IsZero() {
		e.say("Its client's own deadline was %v later.", a.Deadline.Sub(e.now))
	}
	s := e.machine.State()
	e.say("It found %d requests waiting, of %d flows, and a stock of %d at %d ready endpoints. Their lower bounds, for releases, "+
		"add up to %g, their upper bounds, for bypasses, to %g.", s.Queued, s.Flows, s.Stock, s.Ready, s.LowerBound, s.UpperBound)
}

// userIn names the user of a request, if tenants have users.
func (e *explanation) userIn(p *fairqueue.Path) string {
	if e.machine.Config().Queue.Levels < 2 {
		return ""
	}
	return fmt.Sprintf(" (user %q)", under(p, 0))
}

// inBrackets returns an ID in brackets, or nothing.
func inBrackets(id string) string {
	if id == "" {
		return ""
	}
	return "(" + id + ")"
}

// asks describes the endpoints that a request may use.
func asks(a *dispatch.Arrival) string {
	q, ok := a.Placement.(*scheduling.Query)
	if !ok || q == nil {
		return "any endpoint"
	}
	r := q.Recalled()
	text := "any endpoint"
	switch {
	case r.Confined && r.Model != "":
		text = fmt.Sprintf("model %q within a subset of %d endpoints", r.Model, len(r.Subset))
	case r.Confined:
		text = fmt.Sprintf("a subset of %d endpoints", len(r.Subset))
	case r.Model != "":
		text = fmt.Sprintf("model %q", r.Model)
	}
	if r.Needs != 0 {
		text += " that supports " + strings.Join(r.Needs.Names(), ", ")
	}
	return text
}

// event notes the obstacle of the request before each event.
func (e *explanation) event() {
	if e.request == nil || e.request.Stage() != dispatch.StageWaiting {
		return
	}
	if !e.waits {
		e.waits, e.record = true, decision.Record{}
		e.say("Its place was taken before its destination was sent: it waits again, where it had been.")
	}
	e.waiting.note(e.machine.FlowOf(e.now, e.request.Waiter))
}

// refusedEarly notes a request that was refused before it arrived.
func (e *explanation) refusedEarly(r *dispatch.Refusal) {
	if !e.named.is(0, r.ID) {
		return
	}
	if e.request != nil || e.refused != nil {
		e.others = append(e.others, 0)
		return
	}
	d := refusalRecord(e.now, r)
	e.refused = &Explained{Story: d.Text() + "It was refused before it came to the queue.\n", Record: d}
}

// completed notes that the request was served.
func (e *explanation) completed(w *dispatch.Waiter, _ fairqueue.Cost) {
	if e.request != nil && w == e.request.Waiter && w.Stage() != dispatch.StageEnded {
		e.record.Outcome = dispatch.OutcomeDispatched.String()
	}
}

// about, pool, reported and configured implement watcher.
func (e *explanation) about(*request)                                {}
func (e *explanation) pool([]stock.Backend, []stock.Foreign)         {}
func (e *explanation) reported(dispatch.Endpoint, dispatch.Signals)  {}
func (e *explanation) configured(dispatch.Config, scheduling.Config) {}

// expected tells that the request is charged less.
func (e *explanation) expected(w *dispatch.Waiter, cost fairqueue.Cost) {
	if e.request != nil && w == e.request.Waiter {
		e.say("It is charged %d, since its engine is taken to have a part of its prompt cached.", cost)
	}
}

// decided follows a verdict.
func (e *explanation) decided(r *request, v ruling) {
	switch {
	case e.request == nil:
	case r == e.request:
		e.ruled(v)
	case v.stage != dispatch.StageGranted && v.stage != dispatch.StageSent:
	case e.taker == e.events:
		e.sayTaker(r)
		e.taker = 0
	case e.waits:
		e.wentBefore(r)
	}
}

// ruled tells the verdict on the request.
func (e *explanation) ruled(v ruling) {
	waited := e.request.Waited().Round(time.Microsecond)
	e.waits = v.stage == dispatch.StageWaiting
	switch v.stage {
	case dispatch.StageWaiting:
		e.waiting.note(e.machine.FlowOf(e.now, e.request.Waiter))
		e.say("It had to wait: tier %s.", e.tierName(e.request.Tier()))
	case dispatch.StageGranted:
		e.sayWait()
		e.say("It was released after %v.", waited)
		e.sayRecord(decision.InFlight)
	case dispatch.StageSent:
		e.say("It went at once (tier %s): the stock was below the bound, and no request that could go waited before it.", e.tierName(e.request.Tier()))
		e.sayRecord(decision.InFlight)
	case dispatch.StageEnded:
		if e.request.WasQueued() && v.outcome != dispatch.OutcomePreempted {
			e.sayWait()
		}
		e.sayEnd(v, waited)
	default:
	}
}

// sayRecord makes the record, and adds facts that the story lacks.
func (e *explanation) sayRecord(outcome string) {
	e.record = e.recordOf(outcome)
	e.lines = append(e.lines, e.record.Lines()...)
	e.request.watch() // it may be placed again
}

// sayEnd tells how the request ended and, if it was preempted, which request took its place.
func (e *explanation) sayEnd(v ruling, waited time.Duration) {
	line := fmt.Sprintf("It ended as %v", v.outcome)
	if waited != 0 {
		line += fmt.Sprintf(" after %v in the queue", waited)
	}
	line += "."
	if v.retry != 0 {
		line += fmt.Sprintf(" Its client was told to come back in %v.", v.retry.Round(time.Millisecond))
	}
	e.say("%s", line)
	if limit := new(fairqueue.LimitError); errors.As(e.request.Failure(), &limit) {
		e.say("Its class %q had reached its limit of %v: %d waited, and the limit is %d.", limit.Class, limit.Limit, limit.Current, limit.Most)
	}
	if e.record.Outcome == decision.InFlight {
		e.record.Outcome = v.outcome.String()
	} else {
		e.sayRecord(v.outcome.String())
	}
	e.record.RetryAfter = v.retry.Seconds()
	if v.outcome != dispatch.OutcomePreempted {
		return
	}
	if own := e.own; own != nil && own.Stage() == dispatch.StageSent {
		e.sayTaker(own)
	} else {
		e.taker = e.events // a later verdict of this event
	}
}

func (e *explanation) sayTaker(r *request) {
	e.say("Its place was taken by request %s of tier %s.", e.called(r), e.tierName(r.Tier()))
}
