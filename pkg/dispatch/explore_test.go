package dispatch

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	exploreDepth = flag.Int("explore.depth", 0, "inputs that TestExplore puts in a row; 0: what each scene has committed")
	exploreMost  = flag.Int("explore.requests", 0, "requests of each scene; 0: what it has committed")
)

// TestExplore puts every scene through all sequences of inputs up to a depth, and checks every rule in every state
// that they lead to: those of explore_rules_test.go, and that from there, when leases end and time goes on, everybody
// who waits is granted. A state is reached again for each input by replaying the inputs that led to it, and states
// that are equal are explored once. It begins with an empty controller, and with one in which some wait already.
func TestExplore(t *testing.T) {
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
			e := &exploration{t: t, scene: s, seen: map[string]struct{}{}}
			e.run(depth)
			spent := time.Since(start).Seconds()
			t.Logf("depth %d: %d states, %d transitions, %.1f s, %.0f states/s",
				depth, len(e.seen), e.transitions, spent, float64(len(e.seen))/spent)
		})
	}
}

// exploration goes breadth first, so that what it finds is found by a shortest sequence.
type exploration struct {
	t           *testing.T
	scene       *scene
	seen        map[string]struct{}
	transitions int
}

// visit is a state by the inputs that lead to it, with those that can come next.
type visit struct{ path, next []input }

func (e *exploration) run(depth int) {
	var crowd []input
	for _, kind := range e.scene.crowd {
		crowd = append(crowd, input{arrives, kind})
	}
	first := newWorld(e.t, e.scene)
	e.seen[first.state()] = struct{}{}
	frontier := []visit{{next: first.inputs()}, {path: crowd[:len(crowd)-1], next: crowd[len(crowd)-1:]}}
	for range depth {
		if len(frontier) == 0 {
			e.t.Log("every state was reached")
			return
		}
		var further []visit
		for _, v := range frontier {
			for _, in := range v.next {
				path := append(slices.Clip(v.path), in)
				if next := e.step(path); next != nil {
					further = append(further, visit{path, next})
				}
			}
		}
		frontier = further
	}
}

// step goes along the path, checks its last input, and gives the inputs that can come after it; nil when the state is
// known.
func (e *exploration) step(path []input) (next []input) {
	e.transitions++
	w := newWorld(e.t, e.scene)
	defer func() {
		if r := recover(); r != nil {
			e.t.Fatalf("panic: %v\n%s%s", r, e.tell(path), debug.Stack())
		}
	}()
	last := len(path) - 1
	for _, in := range path[:last] {
		if err := w.apply(in); err != nil {
			e.t.Fatalf("%v in a replay\n%s", err, e.tell(path))
		}
	}
	before := w.look(path[last])
	if err := w.apply(path[last]); err != nil {
		e.t.Fatalf("%v\n%s", err, e.tell(path))
	}
	if err := w.check(before); err != nil {
		e.t.Fatalf("%v\n%s", err, e.tell(path))
	}
	state := w.state()
	if _, known := e.seen[state]; known {
		return nil
	}
	e.seen[state] = struct{}{}
	next = w.inputs()
	if err := w.runOut(); err != nil {
		e.t.Fatalf("%v\n%s", err, e.tell(path))
	}
	return next
}

// tell is the path in words.
func (e *exploration) tell(path []input) string {
	w := newWorld(e.t, e.scene)
	var b strings.Builder
	for i, in := range path {
		fmt.Fprintf(&b, "%d. %s\n", i+1, w.tell(in))
		if i < len(path)-1 && w.apply(in) != nil {
			break
		}
	}
	return b.String()
}

// runOut completes leases and lets time go by, with the whole pool, until nobody is left: no wait may last for ever.
func (w *world) runOut() error {
	for w.level < len(w.scene.pool)-1 {
		if err := w.apply(input{grows, 0}); err != nil {
			return err
		}
	}
	for round := 0; ; round++ {
		held := false
		for i, s := range w.subjects {
			switch s.w.stage {
			case StageGranted:
				held = true
				if err := w.apply(input{isTold, int8(i)}); err != nil {
					return err
				}
			case StageSent, StageStreaming:
				held = true
				if err := w.apply(input{completes, int8(i)}); err != nil {
					return err
				}
			case StageNew, StageWaiting, StageEnded:
			}
		}
		switch {
		case held:
		case w.queue.Len() == 0:
			return w.atZero()
		case round > 50:
			return fmt.Errorf("%d wait for ever", w.queue.Len())
		default:
			if err := w.apply(input{advances, 0}); err != nil {
				return err
			}
		}
	}
}
