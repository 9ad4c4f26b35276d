package recording

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Explain returns a text that tells the way of a request in a recording, with the reasons: the state that it found at
// its arrival, what it waited for, which requests went before it and by which right, what share its flow was entitled
// to and got, and why its endpoint was chosen. name is the request's ID in logs, or its number in the recording.
// Explain replays the recording; if the replay differs, it returns that error. What Replay says about forged files
// holds here too.
func (f *Format) Explain(in io.Reader, name string) (text string, err error) {
	p, file, err := f.open(in)
	if err != nil {
		return "", err
	}
	defer p.contain(&err)
	e := &explanation{player: p, name: name, waiting: newWaiting()}
	p.watch = e
	e.findEarlier()
	if err := p.playAll(file); err != nil {
		return "", err
	}
	if e.request == nil {
		return "", fmt.Errorf("request %q: %w", name, errUnknownRequest)
	}
	if e.request.Stage() == dispatch.StageWaiting {
		e.sayWait()
		e.say("When the recording ends it still waits.")
	}
	for i := range e.lines {
		e.lines[i] = printable(e.lines[i])
	}
	return strings.Join(e.lines, "\n") + "\n", nil
}

var errUnknownRequest = errors.New("it is not in the recording: a request is named by its x-request-id, or by its number")

// explanation watches a player for one request.
type explanation struct {
	*player
	name    string
	request *request  // nil until it has arrived
	since   time.Time // its arrival; zero if it arrived before the recording begins
	waits   bool
	taker   uint64 // the event in which it was preempted, until the request that took its place is known
	waiting waiting
	lines   []string
}

// say adds a line.
func (e *explanation) say(format string, args ...any) {
	e.lines = append(e.lines, fmt.Sprintf(format, args...))
}

// findEarlier finds the request if it arrived before the recording begins.
func (e *explanation) findEarlier() {
	for _, r := range e.requests {
		if r.id == e.name || strconv.FormatUint(r.Number(), 10) == e.name {
			e.request = r
			e.waits = r.Stage() == dispatch.StageWaiting
			e.say("Request %s of flow %q, tier %s, arrived before the recording begins.", e.called(r), r.Flow(), e.tierName(r.Tier()))
		}
	}
}

// called returns a request's number and ID.
func (e *explanation) called(r *request) string { return e.player.name(&r.Waiter) }

func (e *explanation) tierName(id int) string {
	for _, t := range e.machine.Tiers(nil) {
		if t.ID == id {
			return t.Name
		}
	}
	return strconv.Itoa(id)
}

// arrived tells the request's demands, and the state that it finds.
func (e *explanation) arrived(r *request, a *dispatch.Arrival) {
	number := e.machine.Arrived() + 1
	if e.request != nil || e.name == "" || r.id != e.name && strconv.FormatUint(number, 10) != e.name {
		return
	}
	e.request, e.since = r, e.now
	e.say("Request %s arrived at %s: flow %q%s, cost %d, %s.", e.name, e.now.UTC().Format(time.RFC3339Nano), a.Flow, e.userIn(a.Path),
		max(1, a.Cost), asks(a))
	if !a.Deadline.IsZero() {
		e.say("Its client's own deadline was %v later.", a.Deadline.Sub(e.now))
	}
	s := e.machine.State()
	e.say("It found %d requests waiting, of %d flows, and a stock of %d at %d ready endpoints (released below %g, bypass below %g).",
		s.Queued, s.Flows, s.Stock, s.Ready, s.LowerBound, s.UpperBound)
}

// userIn says whose user a request is, where tenants have users.
func (e *explanation) userIn(p *fairqueue.Path) string {
	if e.machine.Config().Queue.Levels < 2 {
		return ""
	}
	return fmt.Sprintf(" (user %q)", under(p, 0))
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
		e.waits = true
		e.say("Its place was taken before its destination was sent: it waits again, where it had been.")
	}
	e.waiting.note(e.machine.FlowOf(e.now, &e.request.Waiter))
}

// about, completed, pool and reported implement watcher.
func (e *explanation) about(*request)                               {}
func (e *explanation) completed(*dispatch.Waiter, fairqueue.Cost)   {}
func (e *explanation) pool([]stock.Backend, []stock.Foreign)        {}
func (e *explanation) reported(dispatch.Endpoint, dispatch.Signals) {}

// expected says that the request is charged less.
func (e *explanation) expected(w *dispatch.Waiter, cost fairqueue.Cost) {
	if e.request != nil && w == &e.request.Waiter {
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
		e.waiting.note(e.machine.FlowOf(e.now, &e.request.Waiter))
		e.say("It had to wait: tier %s.", e.tierName(e.request.Tier()))
	case dispatch.StageGranted:
		e.sayWait()
		e.say("It was released after %v.", waited)
		e.sayPlace(v.endpoint)
	case dispatch.StageSent:
		e.say("It went at once (tier %s): the stock was below the bound, and no request that could go waited before it.", e.tierName(e.request.Tier()))
		e.sayPlace(v.endpoint)
	case dispatch.StageEnded:
		if e.request.WasQueued() && v.outcome != dispatch.OutcomePreempted {
			e.sayWait()
		}
		e.sayEnd(v, waited)
	default:
	}
}

// sayEnd says how the request ended and, if it was preempted, which request took its place.
func (e *explanation) sayEnd(v ruling, waited time.Duration) {
	line := fmt.Sprintf("It ended as %v", v.outcome)
	if waited != 0 {
		line += fmt.Sprintf(" after %v in the queue", waited)
	}
	line += "."
	if v.retry != 0 {
		line += fmt.Sprintf(" Its client was told to come back in %v.", v.retry)
	}
	e.say("%s", line)
	if limit := new(fairqueue.LimitError); errors.As(e.request.Failure(), &limit) {
		e.say("Its class %q had reached its limit of %v: %d waited, and the limit is %d.", limit.Class, limit.Limit, limit.Current, limit.Most)
	}
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
