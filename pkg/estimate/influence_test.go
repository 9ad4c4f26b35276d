package estimate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// One flow, whatever it claims to have used, moves the estimate of another by no more than 10 %, or a token. Here
// runs are compared that differ in that flow alone: in one it is honest, lies, or is not there.
func TestOneFlowMovesNobodyElse(t *testing.T) {
	type claim func(draw *rand.Rand) (text, tokens int64)
	claims := []claim{
		func(*rand.Rand) (int64, int64) { return 8000, 1 << 30 },
		func(*rand.Rand) (int64, int64) { return 1 << 30, 1 },
		func(draw *rand.Rand) (int64, int64) { return draw.Int64N(1 << 20), draw.Int64N(1 << 20) },
		func(*rand.Rand) (int64, int64) { return 8000, 2000 },
		nil, // it is not there
	}
	for seed := range uint64(400) {
		shape := rand.New(rand.NewPCG(seed, 1))
		flows := shape.IntN(12)
		lean := shape.Int64N(3) // all alike, two camps, or anything
		estimators := make([]*Estimator, len(claims))
		for i, attacker := range claims {
			e := New(DefaultConfig())
			draw := rand.New(rand.NewPCG(seed, 2))
			for range 60 {
				for f := range flows {
					r := chat(1 + draw.Int64N(20_000))
					r.Flow = fmt.Sprint(f)
					tokens := r.Text / 6
					switch lean {
					case 1:
						tokens = r.Text / (1 + 7*int64(f%2))
					case 2:
						tokens = draw.Int64N(30_000)
					}
					e.Learn(r, Usage{Input: tokens, Output: 1}, time.Second)
				}
				lie := rand.New(rand.NewPCG(seed, draw.Uint64()))
				if attacker != nil {
					r := chat(0)
					var tokens int64
					r.Text, tokens = attacker(lie)
					e.Learn(r, Usage{Input: tokens, Output: lie.Int64N(1 << 30)}, time.Second)
				}
			}
			estimators[i] = e
		}
		for f := range flows + 1 { // the last one is new
			r := chat(0)
			r.Flow = fmt.Sprint(f)
			for _, text := range []int64{1, 10, 1000, 77_777} {
				r.Text = text
				least, most := int64(1)<<62, int64(0)
				for _, e := range estimators {
					got := e.Estimate(r).Input
					least, most = min(least, got), max(most, got)
				}
				if most*10 > least*11+10 {
					t.Fatalf("seed %d, %d flows, flow %d, %d bytes: from %d to %d", seed, flows, f, text, least, most)
				}
			}
		}
	}
}

// Whatever one flow does, in whatever order (it uses, leaves early, is slow or fast, asks for many answers, under any
// model), what is estimated for another flow moves by no more than 10 %, or a token. The other flows do the same in each
// run, and do all of this too.
func TestWhateverOneFlowDoes(t *testing.T) {
	act := func(e *Estimator, draw *rand.Rand, flow string) {
		number := func() int64 { return draw.Int64N(1 << draw.IntN(30)) }
		r := chat(number())
		r.Flow, r.Model = flow, fmt.Sprint("m", draw.IntN(2))
		r.Answers, r.MaxOutput = 1+draw.Int64N(4), number()-1
		took := time.Duration(draw.Int64N(int64(time.Second) << draw.IntN(10)))
		if draw.IntN(2) == 0 {
			e.LearnTime(r, took)
		} else {
			e.Learn(r, Usage{Input: number(), Output: number()}, took)
		}
	}
	attackers := []func(e *Estimator, draw *rand.Rand){
		func(*Estimator, *rand.Rand) {}, // it is not there
		func(e *Estimator, draw *rand.Rand) { act(e, draw, "attacker") },
		func(e *Estimator, _ *rand.Rand) { // answers come at 10,000,000 tokens a second
			e.Learn(&Request{Flow: "attacker", Model: "m0", Text: 8000, MaxOutput: Unknown}, Usage{Input: 1000, Output: 1_000_000}, leastRateTime)
		},
		func(e *Estimator, _ *rand.Rand) { // or at one in a minute
			e.Learn(&Request{Flow: "attacker", Model: "m0", Text: 1000, MaxOutput: Unknown}, Usage{Input: 1000, Output: 16}, 16*time.Minute)
		},
	}
	apart := func(values []int64) bool { return slices.Max(values)*10 > slices.Min(values)*11+10 }
	for seed := range uint64(400) {
		shape := rand.New(rand.NewPCG(seed, 1))
		flows, rounds := shape.IntN(8), 1+shape.IntN(60)
		estimators := make([]*Estimator, len(attackers))
		for i, attack := range attackers {
			e, draw, lie := New(DefaultConfig()), rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))
			for range rounds {
				for f := range flows {
					act(e, draw, fmt.Sprint(f))
				}
				attack(e, lie)
			}
			checkTable(t, e)
			estimators[i] = e
		}
		for f := range flows + 1 { // the last one is new
			r := chat(10_000)
			r.Flow, r.Model = fmt.Sprint(f), "m0"
			var inputs, outputs, costs []int64
			for _, e := range estimators {
				got := e.Estimate(r)
				inputs, outputs, costs = append(inputs, got.Input), append(outputs, got.Output), append(costs, int64(got.Cost))
			}
			if apart(inputs) || apart(outputs) || apart(costs) {
				t.Fatalf("seed %d, %d flows, flow %d: prompts %v, answers %v, costs %v", seed, flows, f, inputs, outputs, costs)
			}
			// It learns from the time of its own answers, no longer from the attacker's.
			outputs = nil
			for _, e := range estimators {
				for range 20 {
					e.LearnTime(r, 40*time.Second)
				}
				outputs = append(outputs, e.Estimate(r).Output)
			}
			if apart(outputs) {
				t.Fatalf("seed %d, %d flows, flow %d: answers %v, learned from their time", seed, flows, f, outputs)
			}
		}
	}
}

// TestOneFlowMovesNobodyElse can fail: the plain median of two camps goes from one end to the other.
func TestCampsAreFarApart(t *testing.T) {
	e := New(DefaultConfig())
	for f := range 30 {
		r := chat(8000)
		r.Flow = fmt.Sprint(f)
		used(e, 10, r, Usage{Input: 1000})
	}
	near(t, "30 flows of 8 bytes a token", e.Estimate(chat(8000)).Input, 1000, 1010)
}

// Memory is bounded, whoever claims how many flows and models. Requests alone take none.
func TestMemoryIsBounded(t *testing.T) {
	e := New(DefaultConfig())
	r := chat(100)
	for i := range 3 * MaxFlows {
		r.Flow, r.Model = fmt.Sprint("flow", i), fmt.Sprint("model", i)
		e.Estimate(r)
	}
	if len(e.flows.flows) != 0 || len(e.models) != 0 {
		t.Fatalf("%d flows, %d models", len(e.flows.flows), len(e.models))
	}
	for i := range 3 * MaxFlows {
		r.Flow = fmt.Sprint("flow", i)
		for j := range 1 + i%12 {
			r.Model = fmt.Sprint("model", i%700, "-", j)
			e.Learn(r, Usage{Input: 30, Output: 30}, time.Second)
		}
	}
	checkTable(t, e)
	if n := len(e.flows.flows); n != MaxFlows {
		t.Errorf("%d flows", n)
	}
}

// One flow takes the place of one other, which is the one that has gone longest without usage, and then of its own
// models.
func TestOneFlowTakesOnePlace(t *testing.T) {
	e := New(DefaultConfig())
	r := chat(6000)
	for i := range MaxFlows {
		r.Flow = fmt.Sprint(i)
		used(e, 10, r, Usage{Input: 2000, Output: 20})
	}
	r.Flow = "0"
	used(e, 1, r, Usage{Input: 2000, Output: 20}) // so 1 is the oldest now
	for i := range 100 {
		r.Flow, r.Model = "attacker", fmt.Sprint(i)
		used(e, 1, r, Usage{Input: 2000, Output: 20})
	}
	checkTable(t, e)
	r.Model = "llama"
	for i := range MaxFlows {
		r.Flow = fmt.Sprint(i)
		if got, want := e.Estimate(r).Output < 1000, i != 1; got != want {
			t.Errorf("flow %d is remembered: %v", i, got)
		}
	}
}

// checkTable checks that models count exactly what the entries have.
func checkTable(t *testing.T, e *Estimator) {
	t.Helper()
	if len(e.flows.flows) > MaxFlows {
		t.Fatalf("%d flows", len(e.flows.flows))
	}
	entries, ratios, rates := map[string]int{}, map[string]int64{}, map[string]int64{}
	listed := 0
	for f := e.flows.newest; f != nil; f = f.past {
		listed++
		if len(f.entries) == 0 || len(f.entries) > MaxModels || e.flows.flows[f.name] != f {
			t.Fatalf("flow %q has %d entries", f.name, len(f.entries))
		}
		for _, x := range f.entries {
			entries[x.name]++
			if x.model != e.models[x.name] {
				t.Fatalf("flow %q: another model %q", f.name, x.name)
			}
			if x.ratio != 0 {
				ratios[x.name]++
			}
			if x.rate != 0 {
				rates[x.name]++
			}
		}
	}
	if listed != len(e.flows.flows) || len(entries) != len(e.models) {
		t.Fatalf("%d of %d flows are listed; %d models, %d of them in use", listed, len(e.flows.flows), len(e.models), len(entries))
	}
	for name, m := range e.models {
		var counted [2]int64
		for _, n := range m.ratios.buckets {
			counted[0] += int64(n)
		}
		for _, n := range m.rates.buckets {
			counted[1] += int64(n)
		}
		if m.entries != entries[name] || m.ratios.flows != ratios[name] || m.rates.flows != rates[name] ||
			counted[0] != ratios[name] || counted[1] != rates[name] {
			t.Fatalf("model %q: %d entries (%d), %d ratios (%d), %d rates (%d)", name, m.entries, entries[name],
				m.ratios.flows, ratios[name], m.rates.flows, rates[name])
		}
	}
}

// How many flows have to agree before a new one is estimated as they are.
func TestFlowsThatAgreeAreBelieved(t *testing.T) {
	for _, c := range []struct{ flows, text, least, most int64 }{
		{0, 5000, 1250, 1250},
		{1, 5000, 1250, 1250}, // of one flow and the cold start, neither is the majority
		{2, 5000, 1146, 1148}, // 9 % less
		{5, 5000, 1051, 1053},
		{6, 5000, 1000, 1010}, // 5 bytes a token, as all of them have
		{18, 8000, 1000, 1010},
		{2, 2000, 544, 546}, // 9 % more than 500, where these two have 1,000
	} {
		e := New(DefaultConfig())
		for f := range c.flows {
			r := chat(c.text)
			r.Flow = fmt.Sprint(f)
			used(e, 50, r, Usage{Input: 1000})
		}
		near(t, fmt.Sprint(c.flows, " flows, ", c.text, " bytes"), e.Estimate(chat(c.text)).Input, c.least, c.most)
	}
}
