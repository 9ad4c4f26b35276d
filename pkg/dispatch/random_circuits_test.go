package dispatch_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// illness describes the failures of a scene's engines; nil: no failures and no circuits.
type illness struct {
	broken [mostEndpoints]spell // when each engine answers 500
	busy   [mostEndpoints]int   // of a hundred answers, those that are 429 with Retry-After
	bad    string               // a flow that gets 500 everywhere
}

// spell is a time after the scene's beginning.
type spell struct{ from, to time.Duration }

// TestRandomFailures plays scenes in which engines fail for a while, or ask for time, and a tenant fails everywhere.
func TestRandomFailures(t *testing.T) {
	runs := *randomRuns / 4
	total := playScenes(t, runs, func(seed uint64) *scene {
		s, r := newScene(seed), rand.New(rand.NewPCG(seed, 7))
		s.illness = &illness{}
		for e := range s.illness.broken {
			if chance(r, 40) {
				from := time.Duration(r.Int64N(int64(s.length)))
				s.illness.broken[e] = spell{from, from + time.Duration(r.Int64N(int64(s.length)))}
			}
			if chance(r, 30) {
				s.illness.busy[e] = 1 + r.IntN(30)
			}
		}
		if chance(r, 30) {
			s.illness.bad = some(r, "a", "b")
		}
		s.config.Circuits = true
		if s.config.Queue.Discipline != fairqueue.OneFlow && chance(r, 30) {
			s.config.MaxInFlightPerFlow = 1 + r.IntN(4)
		}
		for i := range s.changes {
			if s.changes[i].config != nil {
				s.changes[i].config.Circuits = chance(r, 80)
			}
		}
		return s
	})
	if total.failures < 10*runs || total.opened < runs/4 || total.trials < runs/10 || total.heldPlaces < runs {
		t.Errorf("%d scenes met only: %+v", runs, total)
	}
}

// answer is what the engine says at the end of a request.
func (x *run) answer(r *request) dispatch.Answer {
	ill := x.scene.illness
	if ill == nil {
		return dispatch.Answer{}
	}
	random := rand.New(rand.NewPCG(x.scene.seed, uint64(r.load.id)<<32|uint64(r.number)|1<<61))
	at, broken := x.now.Sub(dawn), ill.broken[r.at]
	switch {
	case broken.from <= at && at < broken.to || ill.bad == r.load.flow:
		x.counts.failures++
		r.failed = x.now
		x.failed = append(x.failed, r)
		return dispatch.Answer{Status: some(random, 500, 502, 503, 504)}
	case chance(random, ill.busy[r.at]):
		return dispatch.Answer{Status: 429, RetryAfter: time.Duration(random.IntN(4)) * time.Second}
	case chance(random, 3):
		return dispatch.Answer{} // its client had gone
	}
	a := dispatch.Answer{Status: some(random, 200, 200, 200, 200, 404)}
	if a.Status == 200 {
		x.longest[r.at] = max(x.longest[r.at], x.now.Sub(r.began))
	}
	return a
}

// looksAtEngines reads the engines' states after an event. During the event, the withheld stock of an endpoint is that
// before or after it: for a request that goes the lesser of both, and 0 for its trial; for a request that could have
// gone the greater.
func (x *run) looksAtEngines() {
	if x.scene.illness == nil {
		return
	}
	x.before = x.engines
	x.engines = [mostEndpoints]dispatch.EngineState{}
	for _, s := range x.m.Engines(x.now, nil) {
		x.engines[s.Endpoint] = s
	}
	for e := range x.engines {
		before, after := &x.before[e], &x.engines[e]
		x.withheld[e], x.mostWithheld[e] = min(before.Withheld, after.Withheld), max(before.Withheld, after.Withheld)
		if after.Circuit == stock.CircuitTrial && before.Withheld == after.Withheld && x.isTried(scheduling.EndpointID(e)) {
			x.withheld[e] = 0
		}
	}
}

// couldHaveGone reports whether a request that waits could have gone at any moment of this event.
func (x *run) couldHaveGone(r *request) bool {
	least := x.withheld
	x.withheld = x.mostWithheld
	defer func() { x.withheld = least }()
	return x.mayGo(r, false)
}

// isTried reports whether a request, still without a known answer, has gone to an endpoint in this event.
func (x *run) isTried(e scheduling.EndpointID) bool {
	for r := range x.all() {
		if (r.phase == coming || r.phase == waiting) && r.w.Lease() != nil && r.w.Lease().Endpoint() == e {
			return true
		}
	}
	return false
}

// isShut reports whether an engine gets no requests, or only a trial.
func isShut(s *dispatch.EngineState) bool { return s.Circuit != stock.CircuitClosed || s.Busy }

// circuits checks the documented behavior of circuits after an event.
func (x *run) circuits() {
	if x.scene.illness == nil {
		return
	}
	for e := range x.engines {
		x.withheld[e] = x.engines[e].Withheld
		x.mostWithheld[e] = x.engines[e].Withheld
	}
	half := func(of []*scheduling.Endpoint) bool {
		shut := 0
		for _, e := range of {
			if isShut(&x.engines[e.ID]) {
				shut++
			}
		}
		return 2*shut <= len(of)
	}
	if !half(x.ready()) {
		x.failf("circuits: more than half of the pool is shut: %+v", x.engines)
	}
	for _, r := range x.waiting {
		var lane []*scheduling.Endpoint
		for _, e := range x.ready() {
			if x.serves(r, e) {
				lane = append(lane, e)
			}
		}
		if !half(lane) {
			x.failf("circuits: %v waits, and more than half of its lane is shut: %+v", r, x.engines)
		}
	}
	for e := range x.engines {
		x.circuitAt(scheduling.EndpointID(e))
	}
	x.wentTo = [mostEndpoints]int{}
}

// circuitAt checks one endpoint.
func (x *run) circuitAt(e scheduling.EndpointID) {
	before, after := &x.before[e], &x.engines[e]
	if before.Circuit != after.Circuit {
		switch after.Circuit {
		case stock.CircuitOpen:
			x.counts.opened++
		case stock.CircuitTrial:
			x.counts.trials++
		case stock.CircuitClosed, stock.CircuitHalfOpen:
		}
	}
	if n := x.wentTo[e]; isShut(before) && isShut(after) && n > 1 {
		x.failf("circuits: %d requests go to endpoint %d, which gets one as a trial", n, e)
	}
	flows := map[string]int{} // their fresh failures
	longestHold := max(100*time.Millisecond, x.longest[e]/8)
	for i := range x.scene.loads {
		flows[x.scene.loads[i].flow] = 0
	}
	for _, r := range x.failed {
		if r.at == e && (x.now.Sub(r.failed) < longestHold || len(x.waiting) == 0) {
			flows[r.load.flow]++
		}
	}
	held := 0
	for flow, fresh := range flows {
		n := x.m.PlacesOf(flow, e)
		held += n
		if x.counts.heldPlaces += n; n > fresh || n > 1 && !x.config.Stock.Unbounded { // an eighth of every bound of a scene is less than one
			x.failf("circuits: failures of %s hold %d places at endpoint %d, and %d are fresh", flow, n, e, fresh)
		}
	}
	if shown := after.Held; shown > held {
		x.failf("circuits: %d places are held at endpoint %d, and tenants hold %d", shown, e, held)
	}
}

// mended checks that a minute after the end no failure holds a slot.
func (x *run) mended() {
	x.now = x.now.Add(time.Minute)
	x.m.Advance(x.now)
	for _, s := range x.m.Engines(x.now, nil) {
		if s.Held > 0 || s.Busy || s.Circuit == stock.CircuitOpen || s.Circuit == stock.CircuitTrial ||
			s.Circuit == stock.CircuitClosed && s.Withheld > 0 {
			x.failf("rest: %+v", s)
		}
	}
	for r := range x.all() {
		if n := x.m.PlacesOf(r.load.flow, dispatch.NoEndpoint); n != 0 {
			x.failf("rest: failures of %s hold %d places", r.load.flow, n)
		}
	}
}

// places returns the number of slots held by failures of the request's tenant at an endpoint, or anywhere.
func (o *world) places(r *request, e scheduling.EndpointID) int {
	if o.m == nil {
		return 0
	}
	return o.m.PlacesOf(r.load.flow, e)
}
