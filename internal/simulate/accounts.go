package simulate

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// accounts are the counts of a run.
type accounts struct {
	all    tally
	flows  map[string]*tally
	order  []string // flows by first arrival
	ended  int
	last   time.Time // when the last answer ended
	held   []int     // by engine
	series series

	service *service // nil: it is not counted
}

// tally is the counts of some requests.
type tally struct {
	arrived, ok                  int
	tooLong                      int // requests too long for every engine; they are not offered
	outcomes                     [dispatch.NumOutcomes]int
	prompt, cached, output, cost int64 // of the successful ones
	wait, ttft, total, perOutput histogram
}

// mostFlows is the number of flows counted one by one. The others are counted as one.
const (
	mostFlows  = 1000
	otherFlows = "other flows"
)

func (a *accounts) init(engines int) {
	a.flows = map[string]*tally{}
	a.held = make([]int, engines)
	a.last = epoch
	a.series.init(engines)
}

func (a *accounts) flow(key string) *tally {
	t := a.flows[key]
	if t == nil {
		if len(a.order) >= mostFlows {
			key = otherFlows
			if t = a.flows[key]; t != nil {
				return t
			}
		}
		t = new(tally)
		a.flows[key] = t
		a.order = append(a.order, key)
	}
	return t
}

func (a *accounts) arrived(v *visit) {
	a.all.arrived++
	a.flow(v.asked.Flow).arrived++
	a.series.flow(v.asked.Flow)
	if a.service != nil {
		a.service.arrived(&v.asked)
	}
}

func (a *accounts) granted(v *visit) {
	wait := v.granted.Sub(epoch.Add(v.asked.At))
	a.all.wait.add(wait)
	a.flow(v.asked.Flow).wait.add(wait)
	a.held[v.engine]++
	a.series.granted(wait)
}

// left notes that a preempted request has left its engine.
func (a *accounts) left(v *visit) { a.held[v.engine]-- }

func (a *accounts) rejected(o dispatch.Outcome, flow string) {
	a.ended++
	a.all.outcomes[o]++
	a.flow(flow).outcomes[o]++
}

// use is the usage of a request.
type use struct {
	cached, output int   // tokens
	cost           int64 // as charged
	service        int64 // as the timeline counts it
}

func (a *accounts) tooLong(flow string) {
	a.all.tooLong++
	a.flow(flow).tooLong++
}

func (a *accounts) finished(v *visit, at time.Time, u use) {
	a.ended++
	a.held[v.engine]--
	a.last = at
	arrived := epoch.Add(v.asked.At)
	for _, t := range []*tally{&a.all, a.flow(v.asked.Flow)} {
		t.ok++
		t.outcomes[dispatch.OutcomeDispatched]++
		t.prompt += int64(v.asked.Prompt)
		t.cached += int64(u.cached)
		t.output += int64(u.output)
		t.cost += u.cost
		t.total.add(at.Sub(arrived))
		if !v.first.IsZero() {
			t.ttft.add(v.first.Sub(arrived))
		}
		if u.output > 1 {
			t.perOutput.add(at.Sub(v.first) / time.Duration(u.output-1))
		}
	}
	a.series.finished(v, u)
	if a.service != nil && !v.first.IsZero() {
		a.service.finished(&v.asked, v.first.Sub(epoch), at.Sub(epoch))
	}
}

// pass is called before time advances.
func (a *accounts) pass(at time.Time, s *simulation) {
	a.series.pass(at.Sub(epoch), a.held, s.machine.Waiting())
}

// balance returns an error if a request has no outcome, or several.
func (a *accounts) balance() error {
	ended := a.all.tooLong
	for _, n := range a.all.outcomes {
		ended += n
	}
	if ended != a.all.arrived || a.ended+a.all.tooLong != ended {
		return fmt.Errorf("simulate: %d requests arrived and %d ended", a.all.arrived, ended)
	}
	for i, n := range a.held {
		if n != 0 {
			return fmt.Errorf("simulate: at the end %d requests are held at engine %d", n, i)
		}
	}
	return nil
}
