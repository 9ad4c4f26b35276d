package dispatch_test

import (
	"errors"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A request ends once, with the right outcome, and its client gets the right retry time.

// rejected handles the end of a request without a lease, and checks the retry time for its client.
func (x *run) rejected(r *request) {
	if r.w.Stage() != dispatch.StageEnded || r.phase == ended {
		x.failf("outcome: %v ends twice, or has not ended", r)
	}
	waited := r.phase == waiting
	if waited {
		x.waiting = slices.DeleteFunc(x.waiting, func(o *request) bool { return o == r })
	}
	x.ends(r)
	x.unmeters(r)
	x.counts.rejections++
	x.note("%v ends: %v, retry after %v", r, r.w.Outcome(), r.w.RetryAfter())
	x.toldRightly(r)
	x.endsRightly(r, waited)
}

// toldRightly checks Retry-After.
func (x *run) toldRightly(r *request) {
	least, most := time.Second, 50*time.Second
	switch o := r.w.Outcome(); o {
	case dispatch.OutcomePreempted, dispatch.OutcomeDraining:
		least, most = time.Millisecond, time.Second
	case dispatch.OutcomeNoEndpoint:
		most = 2 * time.Second
	case dispatch.OutcomeClientCancelled, dispatch.OutcomeDeadlineExceeded:
		least, most = 0, 0
	case dispatch.OutcomeQuotaExceeded: // see run.meters
		least, most = 1, time.Hour
	default:
	}
	if d := r.w.RetryAfter(); d < least || d > most {
		x.failf("retry-after: %v ends as %v and is told %v", r, r.w.Outcome(), d)
	}
}

// endsRightly checks the outcome.
func (x *run) endsRightly(r *request, waited bool) {
	q := &x.config.Queue
	flow, tier := 0, 0
	for _, o := range x.waiting {
		if o.w.Tier() == r.w.Tier() {
			if tier++; o.load.flow == r.load.flow && o.class == r.class {
				flow++
			}
		}
	}
	over := !x.now.Before(r.expires)
	wrong := false
	switch o := r.w.Outcome(); o {
	case dispatch.OutcomeTTLExpired:
		wrong = !over || !r.ttl
	case dispatch.OutcomeDeadlineExceeded:
		wrong = !over || r.ttl
	case dispatch.OutcomeClientCancelled:
		wrong = !r.gone && r.patience == 0 && !r.abandons
	case dispatch.OutcomePreempted:
		wrong = !r.sent
	case dispatch.OutcomeNoEndpoint:
		wrong = x.takesAnybody(r) || x.config.HoldWhenEmpty && x.config.Enabled && !r.passesOn
	case dispatch.OutcomeQuotaExceeded:
		wrong = waited || !r.overQuota
	case dispatch.OutcomeShed:
		wrong = waited || x.config.EnqueueAll || x.ranks[r.w.Tier()] == 0
	case dispatch.OutcomeFlowFull:
		wrong = q.Discipline != fairqueue.OneFlow && flow < q.FlowCapacity && !x.userIsFull(r)
	case dispatch.OutcomeQueueFull:
		wrong = q.CapacityMode == fairqueue.Shared && x.strict() && !q.GuaranteedTop && len(x.waiting) < q.TotalCapacity &&
			x.queueSize(r) < 0
		if _, limited := errors.AsType[*fairqueue.LimitError](r.w.Failure()); limited {
			return // see limitedRightly
		}
		for _, other := range x.waiting {
			wrong = wrong || q.CapacityMode == fairqueue.Shared && x.strict() && !q.GuaranteedTop && x.queueSize(r) < 0 && x.above(r, other)
		}
	case dispatch.OutcomeDisplaced:
		wrong = q.CapacityMode != fairqueue.Shared || q.GuaranteedTop && x.strict() && x.ranks[r.w.Tier()] == 0
		for _, other := range x.waiting { // whoever is lower goes first, if the queue was full and not the tier
			wrong = wrong || x.strict() && x.above(r, other) && tier+1 < x.queueSize(r)
		}
	default:
		wrong = true
	}
	if wrong {
		x.failf("outcome: %v ends as %v; %d wait, %d of its tier and %d of its flow", r, r.w.Outcome(), len(x.waiting), tier, flow)
	}
}

// userIsFull reports whether as many requests of the request's user wait as its capacity in the queue.
func (x *run) userIsFull(r *request) bool {
	if len(x.config.Queue.ByLevel) < 2 || x.config.Queue.ByLevel[1].Capacity == 0 {
		return false
	}
	n := 0
	for _, o := range x.waiting {
		if o.w.Tier() == r.w.Tier() && o.class == r.class && sameUser(o, r) {
			n++
		}
	}
	return n >= x.config.Queue.ByLevel[1].Capacity
}

// takesAnybody reports whether one of the request's endpoints is ready and below its limit of requests.
func (x *run) takesAnybody(r *request) bool {
	for i := range x.pool {
		e := &x.pool[i]
		if n, _ := x.at(e.ID); x.serves(r, e) && (e.MaxInFlight == 0 || n < e.MaxInFlight) {
			return true
		}
	}
	return false
}

// queueSize is that of the request's tier; below 0: none.
func (x *run) queueSize(r *request) int {
	for _, t := range x.config.Queue.Tiers {
		if x.named[t.Name] == r.w.Tier() {
			return t.QueueSize
		}
	}
	return 0
}
