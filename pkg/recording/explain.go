package recording

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Explain says in words what became of a request in a recording and why: what it found when it arrived, what it waited
// for, who went before it and by which right, what share its flow was entitled to and got, and why it went where it
// went. name is the request's ID in logs, or its number in the recording. The recording is replayed for it; a replay that
// differs is an error.
func (f *Format) Explain(text []byte, name string) (words string, err error) {
	p, c, err := f.open(text)
	if err != nil {
		return "", err
	}
	defer p.contain(&err)
	e := &explanation{player: p, name: name, rights: map[string]int{}}
	p.watch = e
	e.findEarlier()
	for _, segment := range c.segments {
		if err := p.play(segment); err != nil {
			return "", err
		}
	}
	if e.request == nil {
		return "", fmt.Errorf("request %q: %w", name, errUnknownRequest)
	}
	if e.request.Stage() == dispatch.StageWaiting {
		e.wentBefore()
		e.say("When the recording ends it still waits.")
	}
	for i := range e.lines {
		e.lines[i] = printable(e.lines[i])
	}
	return strings.Join(e.lines, "\n") + "\n", nil
}

var errUnknownRequest = errors.New("it is not in the recording: a request is named by its x-request-id, or by its number")

// explanation is a player's watcher that is interested in one request.
type explanation struct {
	*player
	name    string
	request *request // nil: it has not arrived
	since   time.Time
	waits   bool
	lost    uint64 // the event in which it was preempted
	lines   []string

	// While it waits.
	why          string         // what for
	reasons      []string       // all of that, in order
	before       []string       // who went before it, the first ones
	rights       map[string]int // and all of them, by their right
	order        []string       // of rights, as they came
	total        int
	tier, flow   int // of those, in its tier and of its flow, itself included
	weight, fair float64
}

// mostNamed is how many of those that went before are named.
const mostNamed = 20

func (e *explanation) say(format string, args ...any) {
	e.lines = append(e.lines, fmt.Sprintf(format, args...))
}

// findEarlier finds a request that arrived before the recording begins.
func (e *explanation) findEarlier() {
	for _, r := range e.requests {
		if e.is(r) {
			e.request = r
			e.waits = r.Stage() == dispatch.StageWaiting
			e.say("Request %s of flow %q, tier %s, arrived before the recording begins.", e.called(r), r.Flow(), e.tierName(r.Tier()))
		}
	}
}

func (e *explanation) is(r *request) bool {
	return r.id == e.name || strconv.FormatUint(r.Number(), 10) == e.name
}

func (e *explanation) called(r *request) string { return e.player.name(&r.Waiter) }

func (e *explanation) tierName(id int) string {
	for _, t := range e.machine.Tiers(nil) {
		if t.ID == id {
			return t.Name
		}
	}
	return strconv.Itoa(id)
}

// arrived is the first part: what the request is, and what it finds.
func (e *explanation) arrived(r *request, a *dispatch.Arrival) {
	if e.request != nil || e.name == "" || r.id != e.name && strconv.FormatUint(e.arrivals()+1, 10) != e.name {
		return
	}
	e.request, e.since = r, e.now
	e.say("Request %s arrived at %s: flow %q, cost %d, %s.", e.name, e.now.UTC().Format(time.RFC3339Nano), a.Flow, max(1, a.Cost), asks(a))
	if !a.Deadline.IsZero() {
		e.say("Its client's own deadline was %v later.", a.Deadline.Sub(e.now))
	}
	s := e.machine.State()
	e.say("It found %d requests waiting, of %d flows, and a stock of %d at %d ready endpoints (released below %g, bypass below %g).",
		s.Queued, s.Flows, s.Stock, s.Ready, s.LowerBound, s.UpperBound)
}

// arrivals is how many requests have arrived, before the recording too.
func (e *explanation) arrivals() uint64 { return e.state.machine.Arrived() }

func asks(a *dispatch.Arrival) string {
	q, ok := a.Placement.(*scheduling.Query)
	if !ok || q == nil {
		return "any endpoint"
	}
	r := q.Recalled()
	switch {
	case r.Confined && r.Model != "":
		return fmt.Sprintf("model %q within a subset of %d endpoints", r.Model, len(r.Subset))
	case r.Confined:
		return fmt.Sprintf("a subset of %d endpoints", len(r.Subset))
	case r.Model != "":
		return fmt.Sprintf("model %q", r.Model)
	default:
		return "any endpoint"
	}
}

// event looks, between two events, what the request waits for.
func (e *explanation) event(kind, *request) {
	if e.request == nil || e.request.Stage() != dispatch.StageWaiting {
		return
	}
	if !e.waits {
		e.waits = true
		e.say("Its place was taken before its destination was sent: it waits again, where it had been.")
	}
	e.look()
}

// look notes what the request's flow waits for, and its share.
func (e *explanation) look() {
	tier := e.tierName(e.request.Tier())
	for _, f := range e.machine.Flows(e.now, int(^uint(0)>>1)) {
		if f.Flow != e.request.Flow() || f.Tier != tier {
			continue
		}
		e.weight, e.fair = f.Weight, f.Entitled
		if f.Why != e.why {
			e.why = f.Why
			e.reasons = append(e.reasons, waitsFor[f.Why])
		}
	}
}

// waitsFor puts FlowState.Why into words.
var waitsFor = map[string]string{
	"stock":       "for the stock to fall below the lower bound, and for its turn",
	"cap":         "since its flow had as many requests in flight as it may have",
	"endpoint":    "since no endpoint that it may use had room",
	"reservation": "since what was free is reserved for higher tiers",
	"spacing":     "for the time between two releases",
}

// decided notes a verdict.
func (e *explanation) decided(r *request, v ruling) {
	switch {
	case e.request == nil:
	case r == e.request:
		e.ruled(v)
	case v.stage != dispatch.StageGranted && v.stage != dispatch.StageSent:
	case e.lost == e.events:
		e.say("Its place was taken by request %s of tier %s.", e.called(r), e.tierName(r.Tier()))
		e.lost = 0
	case e.waits:
		e.passed(r)
	}
}

// passed notes that another request went while this one waited.
func (e *explanation) passed(r *request) {
	right := e.rightOf(r)
	if e.rights[right] == 0 {
		e.order = append(e.order, right)
	}
	e.rights[right]++
	e.total++
	if r.Tier() == e.request.Tier() {
		e.tier++
		if r.Flow() == e.request.Flow() {
			e.flow++
		}
	}
	if len(e.before) < mostNamed {
		after := ""
		if !e.since.IsZero() && !e.now.IsZero() {
			after = fmt.Sprintf(" after %v", e.now.Sub(e.since).Round(time.Microsecond))
		}
		e.before = append(e.before, fmt.Sprintf("  request %s of flow %q, tier %s,%s: %s", e.called(r), r.Flow(), e.tierName(r.Tier()), after, right))
	}
}

// rightOf is why another request went before this one.
func (e *explanation) rightOf(r *request) string {
	mine := e.request
	switch {
	case e.higher(r.Tier(), mine.Tier()):
		return "its tier is higher"
	case r.Lease() != nil && r.Lease().Promoted():
		return "it had waited beyond its tier's starvation threshold"
	case r.Tier() == mine.Tier() && r.Flow() == mine.Flow() && r.Number() < mine.Number():
		return "it is of the same flow and had arrived before"
	case e.why == "cap":
		return "this request's flow was at its cap"
	case e.why == "endpoint":
		return "no endpoint that this request may use had room"
	case r.Tier() != mine.Tier():
		return "its tier's share, or this one's tier had nothing available"
	case r.Flow() == mine.Flow():
		return "it is of the same flow, for other endpoints that had room"
	default:
		return "it was its flow's turn, by the flows' weights"
	}
}

// higher reports whether tier a ranks above tier b.
func (e *explanation) higher(a, b int) bool {
	for _, t := range e.machine.Tiers(nil) {
		switch t.ID {
		case b:
			return false
		case a:
			return true
		}
	}
	return false
}

// ruled says what became of the request.
func (e *explanation) ruled(v ruling) {
	waited := e.request.Waited().Round(time.Microsecond)
	e.waits = v.stage == dispatch.StageWaiting
	switch v.stage {
	case dispatch.StageWaiting:
		e.look()
		e.say("It had to wait: tier %s.", e.tierName(e.request.Tier()))
	case dispatch.StageGranted:
		e.wentBefore()
		e.say("It was released after %v.", waited)
		e.placed(v.endpoint)
	case dispatch.StageSent:
		e.say("It went at once (tier %s): the stock was below the bound, and nobody who could go waited before it.", e.tierName(e.request.Tier()))
		e.placed(v.endpoint)
	case dispatch.StageEnded:
		if e.request.WasQueued() && v.outcome != dispatch.OutcomePreempted {
			e.wentBefore()
		}
		e.say("It ended as %v%s.%s", v.outcome, after(waited), comeBack(v.retry))
		if v.outcome != dispatch.OutcomePreempted {
			break
		}
		if own := e.player.own; own != nil && own.Stage() == dispatch.StageSent {
			e.say("Its place was taken by request %s of tier %s.", e.called(own), e.tierName(own.Tier()))
		} else {
			e.lost = e.events
		}
	default:
	}
}

func after(waited time.Duration) string {
	if waited == 0 {
		return ""
	}
	return fmt.Sprintf(" after %v in the queue", waited)
}

func comeBack(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(" Its client was told to come back in %v.", d)
}

// wentBefore says what the request has waited for, who went before it, and what its flow got.
func (e *explanation) wentBefore() {
	if len(e.reasons) > 0 {
		e.say("It waited %s.", strings.Join(e.reasons, "; then "))
	}
	if e.total == 0 {
		e.say("Nobody went before it.")
		e.share()
		return
	}
	e.say("Before it went %d requests:", e.total)
	for _, right := range e.order {
		e.say("* %d: %s", e.rights[right], right)
	}
	if e.total > len(e.before) {
		e.say("The first %d of them:", len(e.before))
	} else {
		e.say("They are:")
	}
	e.lines = append(e.lines, e.before...)
	e.share()
	e.before, e.reasons, e.order, e.rights, e.total, e.tier, e.flow = nil, nil, nil, map[string]int{}, 0, 0, 0
}

// share says what its flow was entitled to and got.
func (e *explanation) share() {
	if e.tier == 0 {
		return
	}
	e.say("Its flow, of weight %g, was entitled to %.0f %% of its tier while it waited, and got %d of its %d releases (%.0f %%).",
		e.weight, 100*e.fair, e.flow, e.tier, 100*float64(e.flow)/float64(e.tier))
}

// placed says why the endpoint.
func (e *explanation) placed(id dispatch.Endpoint) {
	chosen, ok := e.board.Snapshot().ByID(id)
	if !ok {
		e.say("It went to endpoint %d.", id)
		return
	}
	if e.request.query == nil {
		e.say("It went to %s.", chosen.Address)
		return
	}
	d := e.board.Explain(e.request.query)
	e.say("It went to %s. The endpoints of its pool, with it counted:", chosen.Address)
	for i, c := range d.Candidates {
		if i == mostNamed {
			e.say("  and %d more", len(d.Candidates)-i)
			break
		}
		e.say("  %s: %d in flight%s", c.Address, c.Stock, verdictOf(c, c.ID == id))
	}
	e.say("Among those that it may use the highest score goes first, and among equals the next in turn.")
}

func verdictOf(c scheduling.Candidate, chosen bool) string {
	var ruledOut []string
	for _, f := range c.Failed {
		ruledOut = append(ruledOut, f.Reason)
	}
	text := fmt.Sprintf(", score %d", c.Total)
	if len(ruledOut) > 0 {
		text = ", ruled out: " + strings.Join(ruledOut, ", ")
	}
	if chosen {
		text += " (chosen)"
	}
	return text
}
