package simulate

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/pkg/dispatch"
)

// accounts are what is counted during a run.
type accounts struct {
	all     tally
	flows   map[string]*tally
	order   []string // of the flows' first arrivals
	tooLong int      // requests that no engine can take: they do not arrive
	ended   int
	last    time.Time // when the last answer ended
	held    []int     // by engine
	series  series
}

// tally is what is counted of some requests.
type tally struct {
	arrived, ok                  int
	outcomes                     [dispatch.NumOutcomes]int
	prompt, cached, output       int64 // tokens of those that are ok
	wait, ttft, total, perOutput histogram
}

// mostFlows is the number of flows that are counted one by one. The others are counted as one.
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

func (a *accounts) rejected(v *visit) {
	a.ended++
	a.all.outcomes[v.Outcome()]++
	a.flow(v.asked.Flow).outcomes[v.Outcome()]++
}

func (a *accounts) finished(v *visit, event *engine.Event) {
	a.ended++
	a.held[v.engine]--
	a.last = event.At
	arrived := epoch.Add(v.asked.At)
	for _, t := range []*tally{&a.all, a.flow(v.asked.Flow)} {
		t.ok++
		t.outcomes[dispatch.OutcomeDispatched]++
		t.prompt += int64(v.asked.Prompt)
		t.cached += int64(event.Cached)
		t.output += int64(event.Tokens)
		t.ttft.add(v.first.Sub(arrived))
		t.total.add(event.At.Sub(arrived))
		if event.Tokens > 1 {
			t.perOutput.add(event.At.Sub(v.first) / time.Duration(event.Tokens-1))
		}
	}
	a.series.finished(v, event)
}

// pass is called before time goes on.
func (a *accounts) pass(at time.Time, s *simulation) {
	a.series.pass(at.Sub(epoch), a.held, s.machine.Waiting())
}

// balance returns an error if a request has no outcome, or several.
func (a *accounts) balance() error {
	ended := a.tooLong
	for _, n := range a.all.outcomes {
		ended += n
	}
	if ended != a.all.arrived || a.ended+a.tooLong != ended {
		return fmt.Errorf("simulate: %d requests arrived and %d ended", a.all.arrived, ended)
	}
	for i, n := range a.held {
		if n != 0 {
			return fmt.Errorf("simulate: at the end %d requests are held at engine %d", n, i)
		}
	}
	return nil
}
