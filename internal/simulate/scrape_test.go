package simulate

import "testing"

// The engines of a simulation report their state like real ones. Without slots a quiet tenant fares nearly as with the
// right ones, and the engines do as much.
func TestSlotsAreFound(t *testing.T) {
	r := simulated(t, "crowd", 1, false, "auto", "exact", "guess")
	ttft := func(i int) float64 {
		for _, f := range r[i].Flows {
			if f.Flow == "chat" {
				return f.TTFT.P50
			}
		}
		t.Fatal("no such flow")
		return 0
	}
	if auto, exact, guess := ttft(0), ttft(1), ttft(2); auto > exact+.2 || guess < 10*auto {
		t.Errorf("TTFT of the quiet tenant: %.2f s, with the right slots %.2f s, with a guess %.2f s", auto, exact, guess)
	}
	if auto, exact := r[0].All.OutputTokens, r[1].All.OutputTokens; float64(auto) < .98*float64(exact) {
		t.Errorf("%d tokens, with the right slots %d", auto, exact)
	}
}
