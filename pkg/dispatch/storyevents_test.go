package dispatch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

func (s *story) perform(command string, a arguments, block string) {
	s.Helper()
	switch command {
	case "config":
		s.configure(block)
	case "reload":
		s.reload(block)
	case "engine":
		s.engine(a)
	case "ready", "unready":
		for i := range s.pool {
			if a.has(s.pool[i].Key) {
				s.pool[i].Ready = command == "ready"
			}
		}
		s.setPool()
	case "arrive", "pass":
		for range a.number("n", 1) {
			s.arrive(command, a)
		}
	case "told":
		c := s.request(a.words[0])
		s.m.Told(&c.w)
		c.slow, c.stage = false, c.w.Stage()
	case "answer":
		c := s.request(a.words[0])
		if !s.m.FirstByte(c.w.Granted()) {
			s.say(c.name, "its answer is not let through")
		}
		c.stage = c.w.Stage()
		if c.w.Granted().Prefills() {
			s.event(nil, func() { s.m.Prefilled(s.now, c.w.Granted()) })
		}
	case "token":
		s.event(nil, func() { s.m.Prefilled(s.now, s.request(a.words[0]).w.Granted()) })
	case "complete":
		s.complete(a)
	case "raise", "usage":
		s.correct(command, s.request(a.words[0]), a)
	case "cancel":
		for _, name := range a.words {
			c := s.request(name)
			s.event(c, func() { s.m.Cancel(s.now, &c.w, dispatch.OutcomeClientCancelled) })
		}
	case "others":
		var changes []stock.Foreign
		for _, engine := range a.words {
			changes = append(changes, stock.Foreign{
				ID:   stock.BackendID(s.endpointOf(engine)),
				Held: stock.Amount{Requests: a.number("requests", 0), Tokens: stock.Tokens(a.number("tokens", 0))},
			})
		}
		s.event(nil, func() { s.m.SetForeign(s.now, changes) })
	case "says":
		s.event(nil, func() {
			s.m.SetSignals(s.now, s.endpointOf(a.words[0]), scheduling.Signals{
				Known: len(a.named) > 0, Running: int32(a.number("running", 0)), Waiting: int32(a.number("waiting", 0)),
				Preemptions: int64(a.number("preempted", 0)), Produced: int64(a.number("produced", 0)), Slots: int32(a.number("slots", 0)),
			})
		})
	case "move":
		last := len(a.words) - 1
		e := dispatch.NoEndpoint // of a server that is not listed
		if a.words[last] != "elsewhere" {
			e = s.endpointOf(a.words[last])
		}
		for _, name := range a.words[:last] {
			s.event(nil, func() { s.m.ServedElsewhere(s.now, s.request(name).w.Granted(), e, a.number("status", 200)) })
		}
	case "advance":
		s.advance(s.duration(a.words[0]), a.has("late"))
	case "drain":
		s.event(nil, func() { s.m.Drain(s.now) })
	case "show":
		s.show()
	case "deficits":
		for _, c := range s.m.Classes() {
			s.say("", "%s: %d", c.Class, c.Deficit)
		}
	case "accounts":
		s.accounts()
	default:
		s.Fatalf("unknown event %q", command)
	}
}

// event is an event with its caller's duties, and adds its verdicts: first on its own request c, if that has changed.
func (s *story) event(c *character, happens func()) {
	s.Helper()
	happens()
	for s.m.Preemptor() != nil { // whose client is always there
		s.m.Preempt(s.now)
	}
	if c != nil && c.stage != c.w.Stage() {
		s.verdict(c)
	}
	for _, w := range s.m.Verdicts() {
		if o := w.Owner().(*character); o != c {
			s.verdict(o)
		}
	}
	for _, c := range s.cast {
		switch {
		case c.stage == c.w.Stage():
		case c.w.Stage() == dispatch.StageWaiting: // its client notices nothing
			s.verdict(c)
		default:
			s.Fatalf("%s went from stage %d to %d without a verdict", c.name, c.stage, c.w.Stage())
		}
	}
}

// verdict adds the verdict on a request, as its client or an operator sees it. The stream of a granted request is told
// at once, unless it is slow.
func (s *story) verdict(c *character) {
	was, w := c.stage, &c.w
	s.granted++
	c.granted = s.granted
	if w.Stage() == dispatch.StageGranted && !c.slow {
		s.m.Told(w)
	}
	c.stage = w.Stage()
	switch {
	case c.stage == dispatch.StageWaiting && was == dispatch.StageGranted:
		s.say(c.name, "back in its place, waits for %s", s.why(w))
	case c.stage == dispatch.StageWaiting:
		s.say(c.name, "waits for %s", s.why(w))
	case c.stage == dispatch.StageEnded:
		text := rejection(w.Outcome(), w.RetryAfter())
		if limit, ok := errors.AsType[*fairqueue.LimitError](w.Failure()); ok {
			text += fmt.Sprintf(" (%d of %d %v)", limit.Current, limit.Most, limit.Limit)
		}
		s.say(c.name, "%s", text)
	case w.Bypassed():
		s.say(c.name, "to %s, at once", s.placesOf(w))
	case w.Lease().Promoted():
		s.say(c.name, "to %s after %v, promoted", s.placesOf(w), w.Waited())
	default:
		s.say(c.name, "to %s after %v%s", s.placesOf(w), w.Waited(), s.overtaken(c))
	}
}

// why returns the reason why a request waits.
func (s *story) why(w *dispatch.Waiter) string {
	f := s.m.FlowOf(s.now, w)
	if f.User != nil && f.User.Capped {
		return "its user's cap"
	}
	return f.Why
}

// placesOf names where a request is, and the prefill engine that reads its prompt, if any.
func (s *story) placesOf(w *dispatch.Waiter) string {
	text := s.nameOf(w.Lease().Endpoint())
	if e := w.Lease().PrefillEngine(); e != dispatch.NoEndpoint {
		text += " (read by " + s.nameOf(e) + ")"
	}
	return text
}

// overtaken names the requests that a request has overtaken because of its cached prompt.
func (s *story) overtaken(c *character) string {
	var names []string
	saved := int64(0)
	for _, o := range s.m.Overtaken() {
		if o.By == &c.w {
			names, saved = append(names, o.Waiter.Owner().(*character).name), o.Saved
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", before %s, which saves %d tokens", s.shorten(names), saved)
}

// rejection is a rejection as the client sees it.
func rejection(o dispatch.Outcome, retryAfter time.Duration) string {
	if retryAfter == 0 {
		return o.String()
	}
	return fmt.Sprintf("%v, retry after %v", o, retryAfter.Round(time.Millisecond))
}

// complete settles leases.
func (s *story) complete(a arguments) {
	s.Helper()
	if !a.has("oldest") {
		for _, name := range a.words {
			s.settle(s.request(name), a)
		}
		return
	}
	var released []string
	for range a.number("n", 1) {
		s.answer = nil
		s.settle(s.oldest(), a)
		for _, v := range s.answer {
			if !strings.HasPrefix(v.text, "to ") {
				s.Fatalf("%v: complete the requests by name", v)
			}
			if strings.HasSuffix(v.text, "promoted") {
				v.names[0] += "(promoted)"
			}
			released = append(released, v.names...)
		}
	}
	s.answer = []verdict{{text: strings.Join(released, " ")}}
}

func (s *story) settle(c *character, a arguments) {
	s.Helper()
	c.stage = dispatch.StageEnded
	cost := fairqueue.UnknownCost
	if _, given := a.named["cost"]; given {
		cost = fairqueue.Cost(a.number("cost", 0))
	}
	if _, given := a.named["used"]; given {
		s.m.Used(s.now, c.w.Granted(), int64(a.number("used", 0)))
	}
	s.event(nil, func() {
		again := time.Duration(a.number("retry-after", 0)) * time.Second
		if !s.m.Answered(s.now, c.w.Granted(), cost, dispatch.Answer{Status: a.number("status", 200), RetryAfter: again}) {
			s.Fatalf("%s is not in flight", c.name)
		}
	})
}

// oldest is the request in flight that was granted first.
func (s *story) oldest() *character {
	s.Helper()
	some := s.inFlight()
	if len(some) == 0 {
		s.Fatal("nothing is in flight")
	}
	return slices.MinFunc(some, func(a, b *character) int { return a.granted - b.granted })
}

// inFlight lists the requests in flight by arrival.
func (s *story) inFlight() (some []*character) {
	for _, c := range s.cast {
		if c.w.Lease() != nil {
			some = append(some, c)
		}
	}
	return some
}

// correct reports a request's cost.
func (s *story) correct(how string, c *character, a arguments) {
	cost, tokens := fairqueue.Cost(a.number("cost", 0)), stock.Tokens(a.number("tokens", 0))
	s.event(nil, func() {
		if how == "raise" {
			s.m.Raise(s.now, c.w.Granted(), cost, tokens)
		} else {
			s.m.TrueUp(s.now, c.w.Granted(), cost, tokens)
		}
	})
}

// advance advances time. It marks the timer's results with the time passed.
func (s *story) advance(by time.Duration, late bool) {
	begun, end := s.now, s.now.Add(by)
	for !late {
		in, rings := s.m.Next(s.now)
		at := s.now.Add(in)
		if !rings || at.After(end) {
			break
		}
		s.now = at
		n := len(s.answer)
		s.event(nil, func() { s.m.Advance(s.now) })
		for i := range s.answer[n:] {
			s.answer[n+i].text += fmt.Sprintf(" (%v later)", s.now.Sub(begun))
		}
	}
	s.now = end
}

// show is the stock and the queue as an operator sees them.
func (s *story) show() {
	state := s.m.State()
	bounds := fmt.Sprintf("lower bound %v, upper bound %v", state.LowerBound, state.UpperBound)
	if state.Unbounded {
		bounds = "unbounded"
	}
	s.say("", "%d in flight (%s), %d queued", state.Stock, bounds, state.Queued)
	for _, e := range s.pool {
		var names []string
		for _, c := range s.inFlight() {
			if c.w.Lease().Endpoint() == e.ID || c.w.Lease().PrefillEngine() == e.ID {
				names = append(names, c.name)
			}
		}
		if len(names) == 0 {
			names = []string{"nothing"}
		}
		if text := "holds " + s.shorten(names); e.Ready {
			s.say("", "%s %s%s", e.Key, text, s.failingAt(e.ID))
		} else {
			s.say("", "%s, not ready, %s", e.Key, text)
		}
	}
	for _, f := range s.m.Flows(s.now, 1000) {
		var names []string
		for _, c := range s.cast {
			if c.stage == dispatch.StageWaiting && c.w.Flow() == f.Flow {
				of := s.m.FlowOf(s.now, &c.w)
				if of.User = nil; of == f {
					names = append(names, c.name)
				}
			}
		}
		s.say("", "%s: %s waits for %s, entitled to %.3g of %s", f.Flow, s.shorten(names), f.Why, f.Entitled,
			strings.TrimSuffix(f.Tier+"/"+f.Class, "/"))
	}
}

// failingAt reports the stock withheld from an endpoint.
func (s *story) failingAt(e scheduling.EndpointID) string {
	for _, f := range s.m.Engines(s.now, nil) {
		switch {
		case f.Endpoint != e:
		case f.Circuit != stock.CircuitClosed:
			return fmt.Sprintf(", its circuit is %v", f.Circuit)
		case f.Busy:
			return ", and wants nothing"
		case f.Held > 0:
			return fmt.Sprintf(", failures hold %d", f.Held)
		}
	}
	return ""
}

// check compares the counts of machine and board with the requests.
func (s *story) check() {
	s.Helper()
	if s.m == nil {
		return
	}
	queued, at := 0, map[scheduling.EndpointID]int{}
	for _, c := range s.cast {
		if c.w.Stage() == dispatch.StageWaiting {
			queued++
		}
	}
	inFlight := s.inFlight()
	places := len(inFlight)
	for _, c := range inFlight {
		at[c.w.Lease().Endpoint()]++
		if e := c.w.Lease().PrefillEngine(); e != dispatch.NoEndpoint {
			at[e]++
			places++
		}
	}
	if state := s.m.State(); state.Queued != queued || state.Stock != len(inFlight) || s.board.Total() != places {
		s.Fatalf("%d wait and %d are in flight; the machine has %d and %d, the board %d",
			queued, len(inFlight), state.Queued, state.Stock, s.board.Total())
	}
	for id, n := range at {
		if s.board.Stock(id) != n {
			s.Fatalf("%d are in flight at %s, the board has %d", n, s.nameOf(id), s.board.Stock(id))
		}
	}
	if i := slices.IndexFunc(s.pool, func(e scheduling.Endpoint) bool { return s.board.Stock(e.ID) != at[e.ID] }); i >= 0 {
		s.Fatalf("the board has %d at %s, where nothing is", s.board.Stock(s.pool[i].ID), s.pool[i].Key)
	}
}
