package estimate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Answers without usage are charged by their time.

// A flow that lets its answers come slowly to look harmless, and then leaves faster ones, pays for the model's speed.
func TestSlowReadersDoNotLowerTheRate(t *testing.T) {
	e := New(DefaultConfig())
	for i := range 5 {
		r := chat(400)
		r.Flow = string(rune('a' + i))
		e.Learn(r, Usage{Input: 100, Output: 1000}, 5*time.Second)
	}
	slow := chat(400)
	for range 100 {
		e.Learn(slow, Usage{Input: 100, Output: 1000}, 1000*time.Second)
	}
	near(t, "40 s", int64(e.Unfinished(slow, e.Estimate(slow), 40*time.Second)), 100+2*8000, 100+2*9100)
}

// Answers that came in one piece, and short ones, do not tell how fast they were produced.
func TestRateNeedsTime(t *testing.T) {
	e := New(DefaultConfig())
	e.Learn(chat(4), Usage{Input: 1, Output: 100_000}, time.Millisecond)
	e.Learn(chat(4), Usage{Input: 1, Output: 2}, time.Second)
	if got := e.chargedRate(chat(4)); got != 50_000 {
		t.Errorf("rate %d", got)
	}
}

// Flows whose answers never have usage are charged about what they have used, by time and rate: the more alike their
// answers are the better. An engine makes 50 tokens a second.
func TestChargedByTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name        string
		length      func() float64
		least, most float64
	}{
		{"all alike", func() float64 { return 100 }, 1, 1.12},
		{"10 % to either side", func() float64 { return 90 + 20*rng.Float64() }, 1, 1.15},
		{"any up to 200", func() float64 { return 200 * rng.Float64() }, 1.7, 2},
		{"exponential", func() float64 { return 100 * rng.ExpFloat64() }, 2.2, 2.8},
	} {
		e := New(DefaultConfig())
		r := &Request{Flow: "f", Model: "m", Tokens: 0, Answers: 1, MaxOutput: Unknown}
		var charged, used float64
		for i := range 2000 {
			length := c.length()
			produced := time.Duration(length * float64(time.Second) / 50)
			cost := e.Unfinished(r, e.Estimate(r), produced)
			e.LearnTime(r, produced)
			if i >= 50 { // the cold start is over
				charged, used = charged+float64(cost), used+2*length
			}
		}
		if ratio := charged / used; ratio < c.least || ratio > c.most {
			t.Errorf("%s: charged %.2f of what was used, want %.2f to %.2f", c.name, ratio, c.least, c.most)
		} else {
			t.Logf("%s: %.2f", c.name, ratio)
		}
	}
}

// The time of an answer without usage tells its length by the flow's own rate, or by coldRate, whatever rates other flows
// have.
func TestTimeTeachesByTheFlowsOwnRate(t *testing.T) {
	e := New(DefaultConfig())
	for i := range 40 {
		r := chat(400)
		r.Flow = fmt.Sprint("flow", i)
		e.Learn(r, Usage{Input: 100, Output: 1000}, 5*time.Second) // 200 a second
	}
	own, none := chat(400), chat(400)
	none.Flow = "without usage"
	for range 20 {
		e.Learn(own, Usage{Input: 100, Output: 250}, 10*time.Second) // 25 a second
	}
	for range 40 {
		e.LearnTime(own, 40*time.Second)
		e.LearnTime(none, 40*time.Second)
	}
	near(t, "its own rate", e.Estimate(own).Output, 1000, 1125)
	near(t, "the cold rate", e.Estimate(none).Output, 2000, 2250)
}

// Time teaches nobody but its own flow, and no length above the limit.
func TestTimeTeachesItsFlowOnly(t *testing.T) {
	e := New(DefaultConfig())
	other := &Request{Flow: "other", Model: "m", Tokens: 0, Answers: 1, MaxOutput: Unknown}
	for range 20 {
		e.Learn(other, Usage{Input: 10, Output: 100}, 2*time.Second)
	}
	want := e.Estimate(other)
	r := &Request{Flow: "f", Model: "m", Tokens: 0, Answers: 2, MaxOutput: 64}
	for range 200 {
		e.LearnTime(r, time.Hour)
	}
	if got := e.Estimate(other); got != want {
		t.Errorf("the other flow is estimated at %+v, and was at %+v", got, want)
	}
	r.MaxOutput = Unknown
	near(t, "two answers of at most 64", e.Estimate(r).Output, 128, 144)
}
