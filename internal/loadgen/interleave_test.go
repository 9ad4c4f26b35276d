package loadgen

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// Scenarios run in turn, round by round, and the progress ends at 100 %.
func TestInterleaveInTurn(t *testing.T) {
	var order []string
	scenario := func(name string) Scenario {
		return Scenario{Name: name, Run: func(_ context.Context, round int) (Figures, error) {
			order = append(order, name)
			return Figures{"ms": float64(round)}, nil
		}}
	}
	var progress []int
	c, err := Interleave(t.Context(), 3, []Scenario{scenario("a"), scenario("b")}, func(done, total int) {
		progress = append(progress, done, total)
	})
	if err != nil || strings.Join(order, "") != "ababab" || len(c.Rounds) != 3 {
		t.Errorf("%v, order %v, %d rounds", err, order, len(c.Rounds))
	}
	if want := []int{1, 6, 2, 6, 3, 6, 4, 6, 5, 6, 6, 6}; !slices.Equal(progress, want) {
		t.Errorf("progress %v, want %v", progress, want)
	}
}

// Ratios are taken in pairs: a machine that slows down to half its speed in one round affects both.
func TestRatiosArePairByPair(t *testing.T) {
	c := Comparison{Scenarios: []string{"base", "weir"}, Rounds: [][]Figures{
		{{"ms": 10}, {"ms": 12}},
		{{"ms": 100}, {"ms": 110}},
		{{"ms": 10, "odd": 1}, {"ms": 13}},
		{{"ms": 0}, {"ms": 5}}, // no ratio
	}}
	if r := c.Ratio("weir", "base", "ms"); math.Abs(r.Median-1.2) > 1e-9 || r.Min != 1.1 || r.Max != 1.3 {
		t.Errorf("ratio %+v, want 1.2 of 1.1 to 1.3", r)
	}
	if s := c.Of("weir", "ms"); s != (Spread{Median: 12.5, Min: 5, Max: 110}) {
		t.Errorf("spread %+v, want 12.5 of 5 to 110", s)
	}
	if s := c.Of("base", "odd"); s != (Spread{1, 1, 1}) {
		t.Errorf("a figure of one round: %+v", s)
	}
	for _, none := range []Spread{c.Of("weir", "odd"), c.Of("nobody", "ms"), c.Ratio("weir", "nobody", "ms")} {
		if !math.IsNaN(none.Median) || !math.IsNaN(none.Min) || !math.IsNaN(none.Max) {
			t.Errorf("of nothing: %+v", none)
		}
	}
}

// An error keeps the complete rounds before it. Invalid calls are errors too.
func TestInterleaveErrors(t *testing.T) {
	broken := errors.New("broken")
	ok := func(context.Context, int) (Figures, error) { return Figures{}, nil }
	fails := func(_ context.Context, round int) (Figures, error) {
		if round == 1 {
			return nil, broken
		}
		return Figures{}, nil
	}
	c, err := Interleave(t.Context(), 3, []Scenario{{"a", ok}, {"b", fails}}, nil)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), `"b", round 1`) || len(c.Rounds) != 1 {
		t.Errorf("%v after %d rounds", err, len(c.Rounds))
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Interleave(cancelled, 1, []Scenario{{"a", ok}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, scenarios := range [][]Scenario{nil, {{"a", ok}, {"a", ok}}} {
		if _, err := Interleave(t.Context(), 1, scenarios, nil); err == nil {
			t.Errorf("%d scenarios: no error", len(scenarios))
		}
	}
	if _, err := Interleave(t.Context(), 0, []Scenario{{"a", ok}}, nil); err == nil {
		t.Error("no round is no error")
	}
}
