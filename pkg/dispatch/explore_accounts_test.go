package dispatch

import (
	"fmt"

	"github.com/weir-epp/weir/pkg/stock"
)

// accountsAgree compares every account of the controller with the requests.
func (w *world) accountsAgree() error {
	waiting, held, promoted, victims := 0, 0, 0, 0
	tokens := stock.Tokens(0)
	byTier, byEndpoint, tokensAt := [stock.MaxTiers]int{}, [2]int{}, [2]int64{}
	type flowKey struct {
		tier int
		flow string
	}
	flows := map[flowKey]*flowAccount{}
	users := map[flowKey]*flowAccount{} // by the machine's names
	for _, s := range w.subjects {
		l := s.w
		key := flowKey{l.queued.Tier, s.kind.key()}
		if (s.waits() || s.holds()) && flows[key] == nil {
			flows[key] = &flowAccount{}
		}
		user := flowKey{key.tier, string(w.appendUser(nil, key.flow, l.queued.Path))}
		if (s.waits() || s.holds()) && users[user] == nil {
			users[user] = &flowAccount{}
		}
		if s.waits() {
			waiting++
			flows[key].waiting++
			users[user].waiting++
		}
		if s.holds() {
			held++
			tokens += s.tokens
			flows[key].inflight++
			flows[key].tokens += s.tokens
			users[user].inflight++
			users[user].tokens += s.tokens
			byTier[l.held.Tier()]++
			byEndpoint[l.reservation.Endpoint()]++
			tokensAt[l.reservation.Endpoint()] += int64(s.tokens)
			if s.promoted {
				promoted++
			}
		}
		if may := w.preemptible(s) && l.preemptible; may != (l.victimIndex > 0) {
			return fmt.Errorf("%v, stage %d: among the victims %t, want %t", s, l.stage, l.victimIndex > 0, may)
		}
		if l.victimIndex > 0 {
			victims++
			if w.victims.tiers[l.held.Tier()].byEndpoint[l.reservation.Endpoint()].leases[l.victimIndex-1] != l.Granted() {
				return fmt.Errorf("%v is not where it believes to be among the victims", s)
			}
		}
	}
	switch {
	case waiting != w.queue.Len() || held != w.ledger.Stock() || promoted != w.ledger.Promoted() || victims != w.victims.n:
		return fmt.Errorf("waiting %d, queue %d; held %d, stock %d; promoted %d and %d; victims %d and %d",
			waiting, w.queue.Len(), held, w.ledger.Stock(), promoted, w.ledger.Promoted(), victims, w.victims.n)
	case tokens != w.ledger.Tokens() || byEndpoint != w.fleet.reserved:
		return fmt.Errorf("held %d tokens, counted %d; at the endpoints %v, reserved %v", tokens, w.ledger.Tokens(), byEndpoint, w.fleet.reserved)
	case tokensAt != w.fleet.tokens:
		return fmt.Errorf("%v tokens at the endpoints, told %v", tokensAt, w.fleet.tokens)
	case w.ledger.Foreign() != w.fleet.foreign[0]+w.fleet.foreign[1]:
		return fmt.Errorf("others hold %d, at the endpoints %v", w.ledger.Foreign(), w.fleet.foreign)
	case len(flows) != w.flows.n:
		return fmt.Errorf("%d flows, %d accounts", len(flows), w.flows.n)
	case w.failed != nil && w.scene.poison == "":
		return fmt.Errorf("a decision has failed: %w", w.failed)
	case len(w.pending.freed)+len(w.pending.touched)+len(w.pending.lanes) > 0 || w.pending.arrival != nil:
		return fmt.Errorf("left undone: %+v", w.pending)
	}
	for key, want := range flows {
		if a := w.flows.find(key.tier, key.flow); a == nil || a.waiting != want.waiting || a.inflight != want.inflight ||
			a.tokens != want.tokens {
			return fmt.Errorf("flow %v waits %d and holds %d of %d tokens: its account is %+v", key, want.waiting, want.inflight, want.tokens, a)
		}
	}
	if !w.users.on {
		users = nil
	}
	if len(users) != w.users.n {
		return fmt.Errorf("%d users, %d accounts", len(users), w.users.n)
	}
	for key, want := range users {
		if a := w.users.find(key.tier, key.flow); a == nil || a.waiting != want.waiting || a.inflight != want.inflight || a.tokens != want.tokens {
			return fmt.Errorf("user %v waits %d and holds %d of %d tokens: its account is %+v", key, want.waiting, want.inflight, want.tokens, a)
		}
	}
	for tier, n := range byTier {
		if w.ledger.Inflight(tier) != n {
			return fmt.Errorf("tier %d holds %d, in flight %d", tier, n, w.ledger.Inflight(tier))
		}
	}
	return w.asksInTime()
}

// asksInTime: the machine has a next time exactly while a request waits, and that time is not after the next due event.
func (w *world) asksInTime() error {
	in, asks := w.Next(w.clock)
	at := w.clock.Add(in)
	if asks != (w.queue.Len() > 0) {
		return fmt.Errorf("%d wait, to be asked again: %t", w.queue.Len(), asks)
	}
	for _, s := range w.subjects {
		if s.waits() && w.queue.Expired(at.Add(-1), &s.w.queued) {
			return fmt.Errorf("to be asked again in %v, after the deadline of %v", in, s)
		}
	}
	if left, ok := w.queue.UntilStarvation(w.clock); ok && at.After(w.clock.Add(left)) {
		return fmt.Errorf("to be asked again %v behind a starvation", at.Sub(w.clock.Add(left)))
	}
	return nil
}

// stagesAgree: each request is in one stage, and reached it by a valid transition.
func (w *world) stagesAgree(in input) error {
	for i, s := range w.subjects {
		l, own := s.w, in.op != arrives && in.op != passesOn && int(in.index) == i
		holds := l.stage == StageGranted || l.stage == StageSent || l.stage == StageStreaming
		if l.queued.Queued() != s.waits() || s.holds() != holds || s.told != (l.stage == StageEnded) {
			return fmt.Errorf("%v, stage %d: queued %t, lease %t, has an outcome %t", s, l.stage, l.queued.Queued(), s.holds(), s.told)
		}
		if s.preempted && (s.streamed || s.passedOn) {
			return fmt.Errorf("%v is preempted after its first byte, or was passed on", s)
		}
		legal := true
		switch s.last {
		case StageNew:
		case StageWaiting:
			legal = l.stage == StageWaiting || l.stage == StageGranted || l.stage == StageEnded && s.outcome != OutcomeDispatched
		case StageGranted:
			legal = l.stage == StageWaiting || l.stage == StageGranted || own ||
				l.stage == StageEnded && (s.outcome == OutcomeTTLExpired || s.outcome == OutcomeDeadlineExceeded) // preempted unsent, expired
		case StageSent:
			legal = l.stage == StageSent || l.stage == StageStreaming && own || l.stage == StageEnded && (own || s.preempted)
		case StageStreaming:
			legal = l.stage == StageStreaming || l.stage == StageEnded && own
		case StageEnded:
			legal = l.stage == StageEnded
		}
		if !legal {
			return fmt.Errorf("%v went from stage %d to %d", s, s.last, l.stage)
		}
	}
	return nil
}

// atZero: after the end of all requests, all accounts are empty.
func (w *world) atZero() error {
	if s := w.State(); s.Stock != 0 || s.Tokens != 0 || s.LiveFlows != 0 || s.PromotedHeld != 0 {
		return fmt.Errorf("accounts are not zero at the end: %+v", s)
	}
	for _, s := range w.subjects {
		if !s.told {
			return fmt.Errorf("%v has no outcome", s)
		}
	}
	return w.accountsAgree()
}
