package dispatch

import "fmt"

// matchesAgree: if a request takes a slot without a match for itself, no waiting request of its flow has a match there.
func (w *world) matchesAgree() error {
	for _, s := range w.subjects {
		e := s.w.reservation.Endpoint()
		if s.last != StageWaiting || !s.holds() || s.kind.lane.cached() == e || !w.fleet.CanServe(s.kind.lane, s.kind.lane.cached()) {
			continue
		}
		for _, o := range w.subjects {
			if o.waits() && o.last == StageWaiting && o.kind.flow == s.kind.flow && o.kind.lane.cached() == e {
				return fmt.Errorf("%v is at endpoint %d, which has the prompt of %v", s, e, o)
			}
		}
	}
	return nil
}

// mayOvertake reports whether a request may go before another one of its flow: the slot is worth more to it.
func (w *world) mayOvertake(s, o *subject) bool {
	at := s.w.reservation.Endpoint()
	return s.kind.lane.cached() == at && o.kind.lane.cached() != at && w.fleet.CanServe(o.kind.lane, o.kind.lane.cached())
}
