package recording

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// mostNamed is the largest number of requests or reasons listed one by one.
const mostNamed = decision.MostNamed

// waiting sums up the events while a request waits.
type waiting struct {
	why     string         // the current FlowState.Why
	reasons []string       // all reasons for its wait, in order
	before  []string       // descriptions of the first requests that went before it
	rights  map[string]int // number of requests that went before it, by their right
	order   []string       // these rights, by first use
	total   int            // number of requests that went before it
	inTier  int            // of these, in its tier
	ofFlow  int            // of these, of its flow and tier

	overtaken int   // number of requests that took its turn, or overtook it in its line
	saved     int64 // by overtaking, in tokens

	costs                  bool    // requests in its tier had costs other than 1
	costInTier, costOfFlow float64 // their costs

	weight      float64 // of its flow
	least, most float64 // its flow's entitled share

	user   userWait // of its user, where tenants have users
	ofUser int      // requests that went before it, of its user and tier
}

// userWait is the entitled share of its user.
type userWait struct {
	name                string
	weight, least, most float64
}

func newWaiting() waiting { return waiting{rights: map[string]int{}, least: 1} }

// note notes the obstacle of the flow, and its share.
func (w *waiting) note(f dispatch.FlowState) {
	w.weight, w.least, w.most = f.Weight, min(w.least, f.Entitled), max(w.most, f.Entitled)
	why := f.Why
	if u := f.User; u != nil {
		if w.user.name == "" {
			w.user = userWait{name: u.User, least: 1}
		}
		w.user.weight, w.user.least, w.user.most = u.Weight, min(w.user.least, u.Entitled), max(w.user.most, u.Entitled)
		if u.Capped { // FlowState.Why names the tenant's cap even if only all its users' caps are reached
			why = userCap
		}
	}
	if why == w.why {
		return
	}
	w.why = why
	switch n := len(w.reasons); {
	case n < mostNamed:
		w.reasons = append(w.reasons, waitsFor[why])
	case n == mostNamed:
		w.reasons = append(w.reasons, "so on, by turns")
	}
}

// userCap is the reason for a wait for the user's own cap.
const userCap = "user cap"

// waitsFor has the meanings of FlowState.Why in words.
var waitsFor = map[string]string{
	userCap:       "since its user had as many requests in flight as it may have",
	"stock":       "for the stock at an endpoint to fall below its lower bound, and for its turn",
	"cap":         "since its flow had as many requests in flight as it may have",
	"endpoint":    "since no endpoint that it may use had room",
	"busy":        "since the endpoints that it may use were too busy reading prompts for its class",
	"reservation": "since the free stock is reserved for higher tiers",
	"spacing":     "for the time between two releases",
}

// wentBefore notes that r was granted while the request waited.
func (e *explanation) wentBefore(r *request) {
	w, right := &e.waiting, e.rightOf(r)
	if w.rights[right] == 0 {
		w.order = append(w.order, right)
	}
	w.rights[right]++
	w.total++
	for _, o := range e.machine.Overtaken() {
		if o.By == r.Waiter && o.Waiter == e.request.Waiter {
			w.overtaken++
			w.saved += o.Saved
		}
	}
	if r.Tier() == e.request.Tier() {
		w.inTier++
		w.costInTier += float64(r.Cost())
		w.costs = w.costs || r.Cost() != 1
		if r.Flow() == e.request.Flow() {
			w.ofFlow++
			w.costOfFlow += float64(r.Cost())
			if e.sameUser(r) {
				w.ofUser++
			}
		}
	}
	if len(w.before) >= mostNamed {
		return
	}
	after := ""
	if !e.since.IsZero() && !e.now.IsZero() {
		after = fmt.Sprintf(" after %v", e.now.Sub(e.since).Round(time.Microsecond))
	}
	w.before = append(w.before, fmt.Sprintf("  request %s of flow %q, tier %s,%s: %s", e.called(r), r.Flow(), e.tierName(r.Tier()), after, right))
}

// rightOf names the right by which r goes before the request.
func (e *explanation) rightOf(r *request) string {
	own, sameTier := e.request, r.Tier() == e.request.Tier()
	sameFlow := r.Flow() == own.Flow()
	inLine, byArrival := e.sameLine(r), e.byArrival()
	switch {
	case e.ranksAbove(r.Tier(), own.Tier()):
		return "its tier is higher"
	case e.overtook(r, own):
		return "an engine with room had more of its prompt cached, so it took this one's turn"
	case e.overtook(r, nil):
		return "an engine with room had more of its prompt cached, so it took another one's turn"
	case r.Lease() != nil && r.Lease().Promoted():
		return "it had waited beyond its tier's starvation threshold"
	case inLine && sameFlow && byArrival && r.Number() < own.Number():
		return "it is of the same flow and had arrived before"
	case inLine && byArrival && r.Number() < own.Number():
		return "it had arrived before"
	case e.waiting.why == "cap":
		return "this request's tenant was at its cap"
	case e.waiting.why == userCap:
		return "this request's user was at its cap"
	case e.waiting.why == "endpoint":
		return "no endpoint that this request may use had room"
	case e.waiting.why == "busy":
		return "the endpoints that this request may use were too busy for its class"
	case !sameTier:
		return "its tier's share, or this one's tier had nothing available"
	case e.ringOf(r) != e.ringOf(own):
		return "it was its ring's turn: the rings of classes take turns"
	case e.classOf(r) != e.classOf(own):
		return "it was its class's turn, by the classes' quanta"
	case inLine && !byArrival && e.order() == fairqueue.EDF:
		return "it is more urgent, or its deadline is earlier, or is the same and it had arrived before"
	case inLine && !byArrival:
		return "it is more urgent or costs less, or had arrived before"
	case inLine:
		return "it is for other endpoints, which had room"
	case sameFlow && !e.oneFlow():
		return "it was its user's turn, by the weights of the tenant's users"
	default:
		return "it was its flow's turn, by the flows' weights"
	}
}

// overtook reports whether r overtook a request in this event; nil: any request.
func (e *explanation) overtook(r, request *request) bool {
	return slices.ContainsFunc(e.machine.Overtaken(), func(o dispatch.Overtaken) bool {
		return o.By == r.Waiter && (request == nil || o.Waiter == request.Waiter)
	})
}

// sameLine reports whether r and the request have one tier and class, and no weights decide between them: they are of
// one flow, or the discipline is none.
func (e *explanation) sameLine(r *request) bool {
	own := e.request
	return r.Tier() == own.Tier() && e.classOf(r) == e.classOf(own) && (r.Flow() == own.Flow() && e.sameUser(r) || e.oneFlow())
}

// sameUser reports whether r, of the request's tenant, is also of its user; true if tenants have no users.
func (e *explanation) sameUser(r *request) bool {
	for depth := range e.machine.Config().Queue.Levels - 1 {
		if under(r.Path(), depth) != under(e.request.Path(), depth) {
			return false
		}
	}
	return true
}

// under returns the key of a path's flow at a depth, such as a tenant's user.
func under(p *fairqueue.Path, depth int) string {
	if p == nil || depth >= len(p.Under) {
		return ""
	}
	return p.Under[depth]
}

// oneFlow reports whether all requests of a class are one flow, whatever flow they name.
func (e *explanation) oneFlow() bool { return e.machine.Config().Queue.Discipline == fairqueue.OneFlow }

// byArrival reports whether arrival alone orders the requests of the request's line.
func (e *explanation) byArrival() bool {
	o := e.order()
	return (o == fairqueue.FCFS || o == fairqueue.Locality) && !e.machine.Config().Queue.Priorities
}

// order returns the order of the request's line.
func (e *explanation) order() fairqueue.Order {
	queue, class := e.machine.Config().Queue, e.classOf(e.request)
	for _, c := range queue.Classes {
		if (nameOfClass{c.Ring, c.Name}) == class {
			return c.Order
		}
	}
	return queue.Order
}

// nameOfClass is the name of a class, in its ring.
type nameOfClass struct{ ring, class string }

// classOf returns the class of a request within its tier; its names are empty if there are no classes.
func (e *explanation) classOf(r *request) nameOfClass {
	ring, class := e.machine.ClassOf(r.Waiter)
	return nameOfClass{ring, class}
}

// ringOf returns the name of the ring of a request's class.
func (e *explanation) ringOf(r *request) string { return e.classOf(r).ring }

// ranksAbove reports whether tier a ranks above tier b.
func (e *explanation) ranksAbove(a, b int) bool {
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

// sayWait tells the request's obstacles, the requests that went first, and its flow's part. Then it starts over: the
// request may wait again.
func (e *explanation) sayWait() {
	w := &e.waiting
	if len(w.reasons) > 0 {
		e.say("It waited %s.", strings.Join(w.reasons, "; then "))
	}
	if w.total == 0 {
		e.say("No request went before it.")
	} else {
		e.say("Before it went %d requests:", w.total)
		slices.SortStableFunc(w.order, func(a, b string) int { return w.rights[b] - w.rights[a] })
		for _, right := range w.order {
			e.say("* %d: %s", w.rights[right], right)
		}
		if w.total > len(w.before) {
			e.say("The first %d of them:", len(w.before))
		} else {
			e.say("They are:")
		}
		e.lines = append(e.lines, w.before...)
	}
	if w.overtaken > 0 {
		e.say("It was overtaken by %d of them, for a saving of %d tokens that no engine had to read.", w.overtaken, w.saved)
	}
	if w.inTier > 0 && !e.oneFlow() { // with one flow there are no shares
		e.say("Its flow, of weight %g, was entitled to %s of its tier while it waited, and got %d of its %d releases (%.0f %%)%s.",
			w.weight, w.entitled(), w.ofFlow, w.inTier, 100*float64(w.ofFlow)/float64(w.inTier), w.ofCost())
	}
	if u := w.user; w.ofFlow > 0 && u.name != "" && !e.oneFlow() {
		e.say("Its user %q, of weight %g, was entitled to %s of its tier, and got %d of the %d releases of its flow.",
			u.name, u.weight, span(u.least, u.most), w.ofUser, w.ofFlow)
	}
	e.waiting = newWaiting()
}

// entitled tells the flow's entitled share, which changes as other flows come and go.
func (w *waiting) entitled() string { return span(w.least, w.most) }

// span returns two shares in words, as one if they are the same.
func span(from, to float64) string {
	least, most := fmt.Sprintf("%.0f %%", 100*from), fmt.Sprintf("%.0f %%", 100*to)
	if least == most {
		return least
	}
	return least + " to " + most
}

// ofCost tells the flow's part of the releases' cost; nothing if requests cost 1 each.
func (w *waiting) ofCost() string {
	if !w.costs || w.costInTier <= 0 {
		return ""
	}
	return fmt.Sprintf(", which is %.0f %% of their cost as it was charged", 100*w.costOfFlow/w.costInTier)
}
