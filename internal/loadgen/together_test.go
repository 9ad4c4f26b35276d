package loadgen

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// Scenarios of a group meet in each round, and each returns its own figures and its own error.
func TestTogether(t *testing.T) {
	var all [2]sync.WaitGroup // of each round: scenarios that have not begun
	broken := errors.New("broken")
	scenario := func(name string, figure float64) Scenario {
		return Scenario{Name: name, Run: func(_ context.Context, round int) (Figures, error) {
			all[round].Done()
			all[round].Wait() // for ever, if they ran one after the other
			if name == "c" && round == 1 {
				return nil, broken
			}
			return Figures{"x": figure + float64(round)}, nil
		}}
	}
	for i := range all {
		all[i].Add(3)
	}
	c, err := Interleave(t.Context(), 2, Together(scenario("a", 10), scenario("b", 20), scenario("c", 30)), nil)
	if !errors.Is(err, broken) || len(c.Rounds) != 1 {
		t.Fatalf("%v after %d rounds, want the error of c in the second", err, len(c.Rounds))
	}
	for i, name := range []string{"a", "b", "c"} {
		if got := c.Of(name, "x").Median; got != float64(10*(i+1)) {
			t.Errorf("%s measured %v", name, got)
		}
	}
}
