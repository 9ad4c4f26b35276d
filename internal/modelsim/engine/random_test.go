package engine

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The invariants hold after each of many random calls, on engines of all kinds, and each sequence ends exactly once.
// The same seed gives the same events.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(200) {
		first := randomRun(t, seed)
		if seed%20 == 0 && !reflect.DeepEqual(first, randomRun(t, seed)) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

func randomRun(t *testing.T, seed uint64) []Event {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	cfg := Config{
		Slots:      rng.IntN(4),
		AbortDelay: time.Duration(rng.IntN(3)) * 20 * ms,
		BlockSize:  4,
		Blocks:     rng.IntN(2) * 10,
		Jitter:     float64(rng.IntN(2)) * 0.5,
		Seed:       seed,
	}
	if rng.IntN(2) == 0 {
		cfg.ServiceTime = time.Duration(rng.IntN(3)) * 50 * ms
	} else {
		cfg.Step = StepTime{Base: 5 * ms, PerSequence: ms, PerToken: ms / 4}
		cfg.TokenBudget = rng.IntN(2) * 8
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	var all []Event
	live := make(map[ID]int) // tokens seen
	var order []ID
	note := func(now time.Time, events []Event) {
		for _, ev := range events {
			seen, ok := live[ev.ID]
			if !ok {
				t.Fatalf("seed %d: event %+v of an ended sequence", seed, ev)
			}
			if ev.At.After(now) || ev.Tokens < seen || (ev.End == Going && ev.Tokens == seen) {
				t.Fatalf("seed %d: event %+v at %v after %d tokens", seed, ev, now, seen)
			}
			live[ev.ID] = ev.Tokens
			if ev.End != Going {
				delete(live, ev.ID)
			}
		}
		all = append(all, events...)
		checkInvariants(t, e)
	}
	now := epoch
	for range 200 {
		now = now.Add(time.Duration(rng.IntN(40)) * ms)
		switch rng.IntN(4) {
		case 0, 1:
			job := Job{Prompt: 1 + rng.IntN(20), Output: 1 + rng.IntN(10), Streamed: rng.IntN(2) == 0, First: rng.IntN(2) == 0}
			job.Blocks = randomBlocks(rng)
			next := e.lastID + 1
			live[next] = 0
			id, events := e.Submit(now, job)
			if id != next {
				t.Fatalf("seed %d: ID %d, want %d", seed, id, next)
			}
			order = append(order, id)
			note(now, events)
		case 2:
			if len(order) > 0 {
				note(now, e.Abort(now, order[rng.IntN(len(order))]))
			}
		default:
			note(now, e.Advance(now))
		}
	}
	for next, ok := e.Next(); ok; next, ok = e.Next() {
		note(next, e.Advance(next))
	}
	if len(live) > 0 || e.Load().Running+e.Load().Waiting > 0 || e.Load().KVUsage != 0 {
		t.Fatalf("seed %d: at rest %d live, load %+v", seed, len(live), e.Load())
	}
	return all
}

// randomBlocks returns the hashes of a prompt that shares its beginning with some others.
func randomBlocks(rng *rand.Rand) []uint64 {
	var blocks []uint64
	path := uint64(0)
	for range rng.IntN(6) {
		path = path*3 + 1 + rng.Uint64N(2)
		blocks = append(blocks, path)
	}
	return blocks
}

// A run of equal steps has the result of single steps. With an event for each token the engine takes them singly.
func TestRunsAreTheirSteps(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{
			Slots: rng.IntN(5), Step: StepTime{Base: 5 * ms, PerSequence: ms, PerToken: ms / 4},
			TokenBudget: rng.IntN(2) * 8, BlockSize: 4, Blocks: rng.IntN(2) * 14, AbortDelay: time.Duration(rng.IntN(2)) * 7 * ms,
		}
		runs, single := newScript(t, cfg), newScript(t, cfg)
		both := func(do func(s *script)) {
			do(runs)
			do(single)
		}
		for range 60 {
			wait := time.Duration(rng.IntN(60)) * ms
			both(func(s *script) { s.advance(wait) })
			if rng.IntN(4) == 0 {
				id := ID(1 + rng.IntN(20))
				both(func(s *script) { s.abort(id) })
				continue
			}
			job := Job{Prompt: 1 + rng.IntN(20), Output: 1 + rng.IntN(30), Blocks: randomBlocks(rng)}
			runs.submit(job)
			job.Streamed = true
			single.submit(job)
			if got, want := runs.e.Load(), single.e.Load(); got != want {
				t.Fatalf("seed %d: load %+v, step by step %+v", seed, got, want)
			}
		}
		both(func(s *script) { s.advance(time.Hour) })
		single.events = slices.DeleteFunc(single.events, func(event string) bool { return strings.Contains(event, "has") })
		if !slices.Equal(runs.events, single.events) {
			t.Fatalf("seed %d: in runs\n%s\nstep by step\n%s", seed, strings.Join(runs.events, "\n"), strings.Join(single.events, "\n"))
		}
		if got, want := runs.e.Load(), single.e.Load(); got != want {
			t.Fatalf("seed %d: load %+v at the end, step by step %+v", seed, got, want)
		}
	}
}
