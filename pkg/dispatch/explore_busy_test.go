package dispatch

import (
	"fmt"
	"slices"
	"sync"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// In scenes with busy rules each prompt has promptTokens, and one input is the first token of an answer.

// promptTokens is the length of each prompt.
const promptTokens = 2

// prompts are the unread prompts at the fleet's endpoints.
type prompts struct {
	rules   []scheduling.BusyRule
	reading [2]int
	turned  [2]bool // the result of TakeTurned
}

// readingAt has a reservation with an unread prompt for each endpoint, made by a board.
var readingAt = sync.OnceValue(func() (all [2]Reservation) {
	scheduler, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		panic(err)
	}
	board := scheduling.NewBoard(scheduler, nil)
	board.SetSnapshot(scheduling.NewSnapshot(1, []scheduling.Endpoint{
		{ID: 0, Address: "10.0.0.1:80", Ready: true}, {ID: 1, Address: "10.0.0.2:80", Ready: true},
	}))
	board.SetBusyRules([]scheduling.BusyRule{{PrefillTokens: new(int64)}})
	query := scheduling.Recalled{Ratings: &scheduling.Ratings{Prompt: promptTokens}}.Query()
	for e := range all {
		if all[e] = board.PlaceAt(query, Endpoint(e)); !all[e].Reads() {
			panic("a prompt is not read")
		}
	}
	return all
})

// reserve reserves an endpoint.
func (f *fleet) reserve(e Endpoint) Reservation {
	f.reserved[e]++
	if len(f.rules) == 0 {
		return scheduling.Reserved(e)
	}
	f.reads(e, 1)
	return readingAt()[e]
}

// busyBy returns the rules by which an endpoint is busy.
func (f *fleet) busyBy(e Endpoint) (rules uint64) {
	for i, r := range f.rules {
		if f.slots[e] > 0 && int64(f.reading[e]*promptTokens) > *r.PrefillTokens {
			rules |= 1 << i
		}
	}
	return rules
}

// reads changes the number of unread prompts at an endpoint.
func (f *fleet) reads(e Endpoint, by int) {
	was := int(e) < len(f.slots)
	before := uint64(0)
	if was {
		before = f.busyBy(e)
	}
	if f.reading[e] += by; f.reading[e] < 0 {
		panic("read more prompts than there were")
	}
	f.turned[e] = f.turned[e] || was && f.busyBy(e) != before
}

// retell makes TakeTurned name all busy endpoints, like a board after a change of the endpoints.
func (f *fleet) retell() {
	for e := range f.slots {
		f.turned[e] = f.busyBy(Endpoint(e)) != 0
	}
}

func (f *fleet) SetBusyRules(rules []scheduling.BusyRule) {
	f.rules = slices.Clone(rules)
	f.retell()
}

func (f *fleet) Busy(p Placement, rule int) bool {
	n, ready := 0, f.ready(p)
	for _, e := range ready {
		if f.busyBy(e)&(1<<rule) != 0 {
			n++
		}
	}
	return enoughAre(&f.rules[rule], n, len(ready))
}

// enoughAre reports whether n busy endpoints make all busy.
func enoughAre(r *scheduling.BusyRule, n, of int) bool {
	ratio := r.WorkerRatio
	if ratio == 0 {
		ratio = 1_000_000
	}
	return of > 0 && int64(n)*1_000_000 >= ratio*int64(of)
}

func (f *fleet) TakeTurned(some []Endpoint) []Endpoint {
	for e, turned := range f.turned {
		if turned {
			some = append(some, Endpoint(e))
		}
	}
	f.turned = [2]bool{}
	return some
}

func (f *fleet) PromptRead(r *Reservation) {
	if r.Reads() {
		f.reads(r.Endpoint(), -1)
		*r = scheduling.Reserved(r.Endpoint())
	}
}

// busyInputs returns the possible first tokens.
func (w *world) busyInputs() (in []input) {
	if len(w.config.Classes) == 0 {
		return nil
	}
	for i, s := range w.subjects {
		if (s.w.stage == StageSent || s.w.stage == StageStreaming) && !s.read {
			in = append(in, input{reads, int8(i)})
		}
	}
	return in
}

// toRead returns the number of unread prompts at an endpoint, without those of some requests.
func (w *world) toRead(e Endpoint, but []*subject) (n int) {
	for _, s := range w.subjects {
		if s.holds() && s.w.reservation.Endpoint() == e && !s.read && !slices.Contains(but, s) {
			n++
		}
	}
	return n
}

// blocked reports whether a request's endpoints are too busy for its class, without the prompts of some requests.
func (w *world) blocked(s *subject, but ...*subject) bool {
	if len(w.config.Classes) == 0 {
		return false
	}
	rule := &w.config.Classes[0].Busy
	for i, c := range w.config.Queue.Classes {
		if c.Name == s.kind.class() {
			rule = &w.config.Classes[i].Busy
		}
	}
	if rule.PrefillTokens == nil {
		return false
	}
	n, ready := 0, w.fleet.ready(s.kind.lane)
	for _, e := range ready {
		if int64(promptTokens*w.toRead(e, but)) > *rule.PrefillTokens {
			n++
		}
	}
	return enoughAre(rule, n, len(ready))
}

// promptsAgree: the endpoints' unread prompts are their requests' unread prompts.
func (w *world) promptsAgree() error {
	if len(w.config.Classes) == 0 {
		return nil
	}
	for e := range Endpoint(2) {
		if n := w.toRead(e, nil); n != w.fleet.reading[e] {
			return fmt.Errorf("endpoint %d has to read %d prompts, told %d", e, n, w.fleet.reading[e])
		}
	}
	return nil
}

// appendPrompts appends the state that decides which requests are blocked.
func (w *world) appendPrompts(b []byte) []byte {
	if len(w.config.Classes) == 0 {
		return b
	}
	return append(b, byte(w.fleet.reading[0]), byte(w.fleet.reading[1]), one(w.fleet.turned[0]), one(w.fleet.turned[1]))
}
