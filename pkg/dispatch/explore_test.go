package dispatch

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	exploreWhole = flag.Bool("explore.whole", false, "TestExplore goes as deep as each scene has committed, whatever it takes")
	exploreDepth = flag.Int("explore.depth", 0, "inputs that TestExplore puts in a row; 0: what each scene has committed")
	exploreMost  = flag.Int("explore.requests", 0, "requests of each scene; 0: what it has committed")
)

// wholeLives is the depth of a scene that runs until there is no new state.
const wholeLives = 1000

// mostTransitions bounds each scene without a flag: beyond leastDepth, a scene stops before the step that would exceed
// it (a twelfth of it with -short). The full exploration takes half an hour of processor time (make explore).
var (
	mostTransitions = 60_000
	leastDepth      = 3
)

// TestExplore runs every scene through all sequences of inputs up to a depth, and checks every rule in every state
// reached: the rules of explore_rules_test.go, and that every waiting request is granted once leases end and time
// passes. A state is reached again by replaying its inputs; its memory is kept to continue from there with each
// possible input. Equal states are explored once. The exploration starts with an empty machine, and with one with
// waiting requests.
func TestExplore(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a step makes mostly garbage
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			depth := s.depth
			if *exploreDepth > 0 {
				depth = *exploreDepth
			}
			if *exploreMost > 0 {
				s.requests = *exploreMost
			}
			start := time.Now()
			e := &exploration{t: t, scene: s, most: mostTransitions}
			if testing.Short() {
				e.most /= 12
			}
			if *exploreWhole || *exploreDepth > 0 || *exploreMost > 0 {
				e.most = math.MaxInt
			}
			depth = e.run(depth)
			spent := time.Since(start).Seconds()
			t.Logf("depth %d: %d states, %d transitions, %.1f s, %.0f states/s",
				depth, e.seen.len(), e.transitions.Load(), spent, float64(e.seen.len())/spent)
		})
	}
}

// exploration is breadth-first, so each finding comes with a shortest sequence.
type exploration struct {
	t           *testing.T
	scene       *scene
	most        int // transitions, beyond leastDepth
	seen        digests
	ending      digests // states from which every request ends
	transitions atomic.Int64
}

// visit is a state, as the input that leads to it from the previous one, with the possible next inputs.
type visit struct {
	before *visit // nil: the beginning
	in     input
	next   []input
}

// path returns the inputs that lead to v.
func (v *visit) path() (path []input) {
	if v.before == nil {
		return nil
	}
	return append(v.before.path(), v.in)
}

// run explores to a depth, or until it would exceed the most transitions. It returns the depth reached.
func (e *exploration) run(depth int) int {
	first, err := newWorld(e.scene)
	if err != nil {
		e.t.Fatal(err)
	}
	e.seen.add(first.state())
	crowd := &visit{}
	last := len(e.scene.crowd) - 1
	for _, kind := range e.scene.crowd[:last] {
		crowd = &visit{before: crowd, in: input{arrives, kind}}
	}
	crowd.next = []input{{arrives, e.scene.crowd[last]}}
	frontier := []*visit{{next: first.inputs()}, crowd}
	for gone := range depth {
		if len(frontier) == 0 {
			e.t.Log("every state was reached")
			return gone
		}
		ahead := int(e.transitions.Load())
		for _, v := range frontier {
			ahead += len(v.next)
		}
		if gone >= leastDepth && ahead > e.most {
			return gone
		}
		if frontier, err = e.further(frontier); err != nil {
			e.t.Fatal(err)
		}
	}
	return depth
}

// further takes one step from each visit, on all cores. The error is the first failing visit's.
func (e *exploration) further(frontier []*visit) (further []*visit, err error) {
	const batch = 16
	var (
		begun   atomic.Int64
		workers sync.WaitGroup
		mu      sync.Mutex // guards the fields below, and further
		wrong   = len(frontier)
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			walker := walker{exploration: e}
			for {
				from := int(begun.Add(batch)) - batch
				if from >= len(frontier) {
					break
				}
				for i, v := range frontier[from:min(from+batch, len(frontier))] {
					if failure := walker.visit(v); failure != nil {
						mu.Lock()
						if from+i < wrong {
							wrong, err = from+i, failure
						}
						mu.Unlock()
						begun.Store(int64(len(frontier))) // no more
						return
					}
				}
			}
			mu.Lock()
			further = append(further, walker.found...)
			mu.Unlock()
		})
	}
	workers.Wait()
	return further, err
}

// walker explores with its own world.
type walker struct {
	*exploration
	w           *world
	start, here memory // of w
	found       []*visit
}

// visit takes one step from v by each input, and finds the new states.
func (e *walker) visit(v *visit) (err error) {
	path := v.path()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, tell(e.scene, path))
		}
	}()
	if e.w == nil {
		if e.w, err = newWorld(e.scene); err != nil {
			return err
		}
		e.start.keep(e.w)
	}
	e.start.back()
	for _, in := range path {
		if err := e.w.apply(in); err != nil {
			return fmt.Errorf("in a replay: %w", err)
		}
	}
	e.here.keep(e.w)
	path = append(path, input{})
	for _, in := range v.next {
		path[len(path)-1] = in
		next, err := e.step(in)
		if err != nil {
			return err
		}
		if next != nil {
			e.found = append(e.found, &visit{before: v, in: in, next: next})
		}
		e.here.back()
	}
	return nil
}

// step checks an input, and returns the possible next inputs; nil if the state is known.
func (e *walker) step(in input) (next []input, err error) {
	e.transitions.Add(1)
	before, otherWay := e.w.look(in), e.w.otherWay(in)
	if err := e.w.apply(in); err != nil {
		return nil, err
	}
	if err := e.w.check(before); err != nil {
		return nil, err
	}
	after := e.w.state()
	if otherWay != nil {
		e.here.back()
		if otherWay(); e.w.state() != after {
			return nil, errors.New("what the cost is known by makes a difference")
		}
		e.here.back()
		if err := e.w.apply(in); err != nil {
			return nil, err
		}
	}
	if !e.seen.add(after) {
		return nil, nil
	}
	next = e.w.inputs()
	return next, e.runOut(e.w)
}

// tell returns the path in words.
func tell(s *scene, path []input) string {
	w, err := newWorld(s)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i, in := range path {
		fmt.Fprintf(&b, "%d. %s\n", i+1, w.tell(in))
		if i < len(path)-1 && w.apply(in) != nil {
			break
		}
	}
	return b.String()
}

// runOut completes leases and advances time, with the whole pool, until no request is left: no wait may last forever.
// It stops early at a state known to end.
func (e *exploration) runOut(w *world) error {
	var through []digest
	for idle := 0; idle <= 50; {
		d := w.state()
		if e.ending.has(d) {
			break
		}
		through = append(through, d)
		in, goesOn := w.outward()
		if !goesOn {
			if err := w.atZero(); err != nil {
				return err
			}
			if err := w.mended(); err != nil {
				return err
			}
			break
		}
		if idle++; in.op != advances {
			idle = 0
		}
		if idle > 50 {
			return fmt.Errorf("%d wait for ever", w.queue.Len())
		}
		if err := w.apply(in); err != nil {
			return err
		}
	}
	for _, d := range through {
		e.ending.add(d)
	}
	return w.accountsAgree()
}

// outward returns the next input towards an empty machine; false: it is empty.
func (w *world) outward() (in input, goesOn bool) {
	if w.level < len(w.scene.pool)-1 {
		return input{grows, 0}, true
	}
	for e, n := range w.fleet.foreign {
		if n > 0 && w.scene.others > 0 {
			return input{othersGo, int8(e)}, true
		}
	}
	for i, s := range w.subjects {
		switch s.w.stage {
		case StageGranted:
			return input{isTold, int8(i)}, true
		case StageSent, StageStreaming:
			return input{completes, int8(i)}, true
		case StageNew, StageWaiting, StageEnded:
		}
	}
	return input{advances, 0}, w.queue.Len() > 0
}
