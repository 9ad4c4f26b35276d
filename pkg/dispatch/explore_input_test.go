package dispatch

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
	isTold              // a granted waiter's goroutine takes its lease, and the destination is sent
	firstByte           // of a request's answer
	completes           // a stream ends
	cancels             // a client leaves before its destination was sent
	isServed            // by an endpoint other than the picked one
	advances            // a tick goes by
	grows               // the pool
	shrinks
	reloads    // to the other configuration
	othersCome // one more foreign request at an endpoint
	othersGo   // one fewer

	raises         // a request's cost turns out to be at least dear
	truesUp        // its cost turns out to be cheap
	completesCheap // a stream ends with a known cost
	completesDear
	fails // an engine answers 500
	asks  // an engine answers 429 with Retry-After
	fires // the timer fires at once, since more have expired

	reads           // the first token of a request's answer
	completesLittle // a stream ends, with little or much use of its tenant's quota
	completesMuch
)

// input is one step. The index is of a kind, of a request (by arrival), or of an endpoint.
type input struct {
	op    op
	index int8
}

// inputs returns the possible inputs.
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
		switch s.w.stage {
		case StageWaiting:
			in = append(in, input{cancels, at})
			timed = true
		case StageGranted:
			in = append(in, input{isTold, at}, input{cancels, at})
			timed = true
		case StageSent:
			if s.w.preemptible {
				in = append(in, input{firstByte, at})
			}
			in = append(in, input{completes, at})
			if w.fleet.CanServe(s.kind.lane, 1-s.w.reservation.Endpoint()) {
				in = append(in, input{isServed, at})
			}
		case StageStreaming:
			in = append(in, input{completes, at})
		case StageNew, StageEnded:
		}
	}
	switch {
	case w.someOverdue():
		in = append(in, input{fires, 0})
	case timed:
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
	for e, n := range w.fleet.foreign {
		if n < w.scene.others && w.fleet.slots[e] > 0 {
			in = append(in, input{othersCome, int8(e)})
		}
		if n > 0 && w.scene.others > 0 {
			in = append(in, input{othersGo, int8(e)})
		}
	}
	return slices.Concat(in, w.usageInputs(), w.circuitInputs(), w.busyInputs(), w.quotaInputs())
}

// isMirrored reports whether this arrival has the same effect as another input. The flows of a tier are interchangeable
// while neither has a request, so then flow a arrives.
func (w *world) isMirrored(k arrivalKind) bool {
	if k.flow != "b" {
		return false
	}
	type place struct {
		tier int
		lane reach
	}
	concerns := func(o arrivalKind) bool { return o.tier == k.tier || w.capped } // caps join the tiers
	lanes := map[string]map[place]bool{"a": {}, "b": {}}
	for _, o := range w.scene.kinds {
		if concerns(o) && lanes[o.flow] != nil {
			lanes[o.flow][place{o.tier, o.lane}] = true
		}
	}
	return maps.Equal(lanes["a"], lanes["b"]) &&
		!slices.ContainsFunc(w.subjects, func(s *subject) bool { return concerns(s.kind) && s.w.stage != StageEnded })
}

// apply gives the world one input.
func (w *world) apply(in input) error {
	clear(w.heard)
	for _, s := range w.subjects {
		s.last, s.wasHeld, s.wasAt = s.w.stage, s.w.held.Held(), s.w.reservation.Endpoint()
	}
	own := (*subject)(nil) // its caller reads the verdict itself
	switch in.op {
	case arrives:
		w.arrives(w.scene.kinds[in.index], false)
		own = w.subjects[len(w.subjects)-1]
	case passesOn:
		w.arrives(w.scene.kinds[in.index], true)
		own = w.subjects[len(w.subjects)-1]
	case isTold:
		w.Told(w.subjects[in.index].w)
	case firstByte:
		s := w.subjects[in.index]
		if !w.FirstByte(s.w.Granted()) {
			return fmt.Errorf("the first byte of %v is not let through", s)
		}
		s.streamed = true
	case completes:
		w.complete(w.subjects[in.index])
	case cancels:
		own = w.subjects[in.index]
		w.event(func() { w.Cancel(w.clock, own.w, OutcomeClientCancelled) })
	case fails:
		w.answers(w.subjects[in.index], 500)
	case asks:
		w.answers(w.subjects[in.index], 429)
	case isServed:
		s := w.subjects[in.index]
		w.event(func() { w.ServedElsewhere(w.clock, s.w.Granted(), 1-s.w.reservation.Endpoint(), 200) })
	case advances:
		w.advance()
	case fires:
		w.event(func() { w.Advance(w.clock) })
	case reads:
		s := w.subjects[in.index]
		s.read = true
		w.event(func() { w.Prefilled(w.clock, s.w.Granted()) })
	case completesLittle:
		w.uses(w.subjects[in.index], little)
	case completesMuch:
		w.uses(w.subjects[in.index], much)
	case grows:
		w.level++
		w.backends()
	case shrinks:
		w.level--
		w.backends()
	case othersCome:
		w.tellForeign(int(in.index), 1)
	case othersGo:
		w.tellForeign(int(in.index), -1)
	case reloads:
		if err := w.reloadOther(); err != nil {
			return err
		}
	default:
		w.useOf(in)
	}
	for _, s := range w.subjects {
		s.promoted = s.w.held.Held() && s.w.held.Promoted()
	}
	if err := w.verdictsAgree(own); err != nil {
		return err
	}
	defer w.settleQuotas()
	return w.streams()
}

// reloadOther switches to the other configuration.
func (w *world) reloadOther() (err error) {
	cfg := w.configuration(!w.reloaded)
	w.reloaded = !w.reloaded
	w.event(func() { err = w.Configure(w.clock, cfg) })
	return err
}

// verdictsAgree checks that each request that stopped waiting is named in a verdict, except the input's own request.
func (w *world) verdictsAgree(own *subject) error {
	for _, s := range w.subjects {
		decided := s.w.stage == StageGranted && s.last != StageGranted || s.w.stage == StageEnded && !s.told && s.last == StageWaiting
		if decided && s != own && w.heard[s.w] == 0 {
			return fmt.Errorf("%v has a verdict, and nobody hears of it", s)
		}
	}
	return nil
}

// isOverdue reports whether the request waits although it has expired, and someOverdue whether any does.
func (w *world) isOverdue(s *subject) bool {
	return s.waits() && w.queue.Expired(w.clock, &s.w.queued)
}

func (w *world) someOverdue() bool { return slices.ContainsFunc(w.subjects, w.isOverdue) }

// tell returns the input in words.
func (w *world) tell(in input) string {
	switch in.op {
	case arrives:
		return fmt.Sprintf("arrives: %v", &subject{kind: w.scene.kinds[in.index]})
	case passesOn:
		return fmt.Sprintf("is passed on: %v", &subject{kind: w.scene.kinds[in.index]})
	case isTold, firstByte, completes, cancels, isServed:
		return fmt.Sprintf("%s: number %d, %v",
			[]string{isTold: "is told", firstByte: "first byte", completes: "completes", cancels: "is cancelled", isServed: "is served elsewhere"}[in.op],
			in.index+1, w.subjects[in.index])
	case advances:
		return "a tick goes by"
	case othersCome, othersGo:
		return fmt.Sprintf("%s endpoint %d", []string{othersCome: "others send one to", othersGo: "others end one at"}[in.op], in.index)
	case grows:
		return fmt.Sprintf("grows to %v", w.scene.pool[w.level+1])
	case shrinks:
		return fmt.Sprintf("shrinks to %v", w.scene.pool[w.level-1])
	case reloads:
		return "reloads"
	default:
		return fmt.Sprintf("%s: number %d, %v", []string{
			reads: "has its first token", completesLittle: "completes, and has used little", completesMuch: "completes, and has used much",
			fails: "fails", asks: "is told to come later", raises: "is dear", truesUp: "is cheap", completesCheap: "completes, cheap", completesDear: "completes, dear",
		}[in.op], in.index+1, w.subjects[in.index])
	}
}
