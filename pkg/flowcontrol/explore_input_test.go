package flowcontrol

import (
	"fmt"
	"maps"
	"slices"
)

// op is a kind of input.
type op uint8

const (
	arrives   op = iota // of a kind
	passesOn            // of a kind, without queueing
	isTold              // a granted waiter's goroutine takes its lease: the destination is sent
	firstByte           // of a request's answer
	completes           // a stream ends
	leaves              // a client goes whose destination was not sent
	isServed            // by another endpoint than the one picked
	advances            // a tick goes by
	grows               // the pool
	shrinks
	reloads // to the other configuration
)

// input is one step: the index is that of a kind or of a request, by arrival.
type input struct {
	op op
	at int8
}

// inputs are those that can come now.
func (w *world) inputs() (in []input) {
	if len(w.subjects) < w.scene.requests {
		for i, k := range w.scene.kinds {
			if w.isMirrored(k) {
				continue
			}
			in = append(in, input{arrives, int8(i)})
			if w.scene.passOn {
				in = append(in, input{passesOn, int8(i)})
			}
		}
	}
	timed := false
	for i, s := range w.subjects {
		at := int8(i)
		switch s.lease.stage {
		case stageWaiting:
			in = append(in, input{leaves, at})
			timed = true
		case stageGranted:
			in = append(in, input{isTold, at}, input{leaves, at})
			timed = true
		case stageSent:
			if s.lease.preempted != nil {
				in = append(in, input{firstByte, at})
			}
			in = append(in, input{completes, at})
			if w.fleet.CanServe(s.kind.lane, 1-s.lease.endpoint) {
				in = append(in, input{isServed, at})
			}
		case stageStreaming:
			in = append(in, input{completes, at})
		case stageNew, stageEnded:
		}
	}
	if timed {
		in = append(in, input{advances, 0})
	}
	if w.level > 0 {
		in = append(in, input{shrinks, 0})
	}
	if w.level < len(w.scene.pool)-1 {
		in = append(in, input{grows, 0})
	}
	if w.scene.reload != nil {
		in = append(in, input{reloads, 0})
	}
	return in
}

// isMirrored says whether this arrival would do the same as another one that is an input as well: the flows of a tier
// have the same possibilities, so flow b comes only after flow a has.
func (w *world) isMirrored(k arrivalKind) bool {
	if k.flow == "a" {
		return false
	}
	lanes := map[string]map[reach]bool{"a": {}, "b": {}}
	for _, o := range w.scene.kinds {
		if o.tier == k.tier {
			lanes[o.flow][o.lane] = true
		}
	}
	return maps.Equal(lanes["a"], lanes["b"]) &&
		!slices.ContainsFunc(w.subjects, func(s *subject) bool { return s.kind.tier == k.tier })
}

// apply gives the world one input.
func (w *world) apply(in input) error {
	for _, s := range w.subjects {
		s.last, s.wasHeld, s.wasAt = s.lease.stage, s.lease.held.Held(), s.lease.endpoint
	}
	switch in.op {
	case arrives:
		w.arrive(w.scene.kinds[in.at], false)
	case passesOn:
		w.arrive(w.scene.kinds[in.at], true)
	case isTold:
		w.verdict(w.subjects[in.at])
	case firstByte:
		s := w.subjects[in.at]
		if err := s.lease.OnFirstByte(); err != nil {
			return fmt.Errorf("the first byte of %v is not let through: %w", s, err)
		}
		s.streamed = true
	case completes:
		w.complete(w.subjects[in.at])
	case leaves:
		s := w.subjects[in.at]
		s.client.gone = true
		w.verdict(s)
	case isServed:
		s := w.subjects[in.at]
		s.lease.OnServed(1 - s.lease.endpoint)
	case advances:
		w.advance()
	case grows:
		w.level++
		w.backends()
	case shrinks:
		w.level--
		w.backends()
	case reloads:
		if err := w.reloadOther(); err != nil {
			return err
		}
	}
	for _, s := range w.subjects {
		s.promoted = s.lease.held.Held() && s.lease.held.Promoted()
	}
	if err := w.wokenUp(); err != nil {
		return err
	}
	return w.streams()
}

// reloadOther changes to the configuration that is not the present one.
func (w *world) reloadOther() error {
	cfg := w.configuration(!w.reloaded)
	w.reloaded = !w.reloaded
	return w.Reconfigure(cfg, nil)
}

// wokenUp checks that whoever has a verdict finds a wake-up in its channel.
func (w *world) wokenUp() error {
	for _, s := range w.subjects {
		l := s.lease
		if (l.stage == stageGranted || l.stage == stageEnded && !s.told && s.last == stageWaiting) && len(l.woken) != 1 {
			return fmt.Errorf("%v has a verdict, and nobody wakes it", s)
		}
	}
	if len(w.wakes) > 0 {
		return fmt.Errorf("%d wake-ups were left when the lock was given back", len(w.wakes))
	}
	return nil
}

// tell is the input in words.
func (w *world) tell(in input) string {
	switch in.op {
	case arrives:
		return fmt.Sprintf("arrives: %v", &subject{kind: w.scene.kinds[in.at]})
	case passesOn:
		return fmt.Sprintf("is passed on: %v", &subject{kind: w.scene.kinds[in.at]})
	case isTold, firstByte, completes, leaves, isServed:
		return fmt.Sprintf("%s: number %d, %v",
			[]string{isTold: "is told", firstByte: "first byte", completes: "completes", leaves: "leaves", isServed: "is served elsewhere"}[in.op],
			in.at+1, w.subjects[in.at])
	case advances:
		return "a tick goes by"
	case grows:
		return fmt.Sprintf("grows to %v", w.scene.pool[w.level+1])
	case shrinks:
		return fmt.Sprintf("shrinks to %v", w.scene.pool[w.level-1])
	default:
		return "reloads"
	}
}
