package flowcontrol

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/stock"
)

// accountsAgree compares every account of the controller with the requests.
func (w *world) accountsAgree() error {
	waiting, unsent, held, promoted, victims := 0, 0, 0, 0, 0
	byTier, byEndpoint := [stock.MaxTiers]int{}, [2]int{}
	type flowKey struct {
		tier int
		flow string
	}
	flows := map[flowKey]*flowAccount{}
	var outcomes [NumOutcomes]int
	for _, s := range w.subjects {
		l := s.lease
		if s.told {
			outcomes[s.outcome]++
		}
		key := flowKey{l.queued.Tier, s.kind.flow}
		if (s.waits() || s.holds()) && flows[key] == nil {
			flows[key] = &flowAccount{}
		}
		if s.waits() {
			waiting++
			flows[key].waiting++
		}
		if l.stage == stageGranted {
			unsent++
		}
		if s.holds() {
			held++
			flows[key].inflight++
			byTier[l.held.Tier()]++
			byEndpoint[l.endpoint]++
			if s.promoted {
				promoted++
			}
		}
		if may := w.preemptible(s) && l.preempted != nil; may != (l.victimAt > 0) {
			return fmt.Errorf("%v, stage %d: among the victims %t, want %t", s, l.stage, l.victimAt > 0, may)
		}
		if l.victimAt > 0 {
			victims++
			if w.victims.tiers[l.held.Tier()].byEndpoint[l.endpoint].leases[l.victimAt-1] != l {
				return fmt.Errorf("%v is not where it believes to be among the victims", s)
			}
		}
	}
	switch {
	case waiting != w.queue.Len() || held != w.ledger.Stock() || promoted != w.ledger.Promoted() || victims != w.victims.n:
		return fmt.Errorf("waiting %d, queue %d; held %d, stock %d; promoted %d and %d; victims %d and %d",
			waiting, w.queue.Len(), held, w.ledger.Stock(), promoted, w.ledger.Promoted(), victims, w.victims.n)
	case int64(held) != w.ledger.Cost() || byEndpoint != w.fleet.reserved:
		return fmt.Errorf("held %d, cost %d; at the endpoints %v, reserved %v", held, w.ledger.Cost(), byEndpoint, w.fleet.reserved)
	case w.tallies.length.n != waiting+unsent || w.tallies.stocks.n != held-unsent:
		return fmt.Errorf("waiting %d and unsent %d, gauge %d; held %d, gauge %d",
			waiting, unsent, w.tallies.length.n, held, w.tallies.stocks.n)
	case len(flows) != w.flows.n:
		return fmt.Errorf("%d flows, %d accounts", len(flows), w.flows.n)
	case w.failure != nil && w.scene.poison == "":
		return fmt.Errorf("the pump has failed: %w", w.failure)
	}
	for key, want := range flows {
		if a := w.flows.find(key.tier, key.flow); a == nil || a.waiting != want.waiting || a.inflight != want.inflight {
			return fmt.Errorf("flow %v waits %d and holds %d: its account is %+v", key, want.waiting, want.inflight, a)
		}
	}
	for tier, n := range byTier {
		if w.ledger.Inflight(tier) != n {
			return fmt.Errorf("tier %d holds %d, in flight %d", tier, n, w.ledger.Inflight(tier))
		}
	}
	for o, n := range outcomes {
		if w.tallies.outcomes[o].n != n {
			return fmt.Errorf("%d ended as %v, counted %d", n, Outcome(o), w.tallies.outcomes[o].n)
		}
	}
	return w.timerStands()
}

// timerStands: exactly while somebody waits, and not behind what is due next.
func (w *world) timerStands() error {
	if w.armed.IsZero() != (w.queue.Len() == 0) {
		return fmt.Errorf("%d wait, the timer stands at %v", w.queue.Len(), w.armed)
	}
	if at, ok := w.queue.NextDeadline(); ok && w.armed.After(at) {
		return fmt.Errorf("the timer stands %v behind a deadline", w.armed.Sub(at))
	}
	if at, ok := w.queue.NextStarvation(time.Now()); ok && w.armed.After(at) {
		return fmt.Errorf("the timer stands %v behind a starvation", w.armed.Sub(at))
	}
	return nil
}

// stagesAgree: each request is in one place, and came there by a way that there is.
func (w *world) stagesAgree(in input) error {
	for i, s := range w.subjects {
		l, own := s.lease, in.op != arrives && in.op != passesOn && int(in.at) == i
		holds := l.stage == stageGranted || l.stage == stageSent || l.stage == stageStreaming
		if l.queued.Queued() != s.waits() || s.holds() != holds || s.told != (l.stage == stageEnded) {
			return fmt.Errorf("%v, stage %d: queued %t, lease %t, has an outcome %t", s, l.stage, l.queued.Queued(), s.holds(), s.told)
		}
		if s.preempted && s.streamed {
			return fmt.Errorf("%v is preempted after its first byte", s)
		}
		legal := true
		switch s.last {
		case stageNew:
		case stageWaiting:
			legal = l.stage == stageWaiting || l.stage == stageGranted || l.stage == stageEnded && s.outcome != OutcomeDispatched
		case stageGranted:
			legal = l.stage == stageWaiting || l.stage == stageGranted || own ||
				l.stage == stageEnded && s.outcome == OutcomeTTLExpired // preempted unsent, and its time is over
		case stageSent:
			legal = l.stage == stageSent || l.stage == stageStreaming && own || l.stage == stageEnded && (own || s.preempted)
		case stageStreaming:
			legal = l.stage == stageStreaming || l.stage == stageEnded && own
		case stageEnded:
			legal = l.stage == stageEnded
		}
		if !legal {
			return fmt.Errorf("%v went from stage %d to %d", s, s.last, l.stage)
		}
	}
	return nil
}

// atZero: when all is over, nothing is left in any account.
func (w *world) atZero() error {
	if s := w.State(); s.Stock != 0 || s.Cost != 0 || s.LiveFlows != 0 || s.PromotedHeld != 0 || s.TimerStands {
		return fmt.Errorf("accounts are not zero at the end: %+v", s)
	}
	for _, s := range w.subjects {
		if !s.told {
			return fmt.Errorf("%v has no outcome", s)
		}
	}
	return w.accountsAgree()
}
