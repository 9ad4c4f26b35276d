package simulate

import (
	"math/rand/v2"
	"testing"
)

// No length exceeds the maximum of its text, which is less than MaxTokens for a short mean.
func TestMostOfLengths(t *testing.T) {
	for text, want := range map[string]int{
		"500": 500, "100..900": 900, "~300..4000": 4000, "~300": 13_500, "~3000000": MaxTokens, "~300..4000000": 13_500,
	} {
		var l Length
		if err := l.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := l.most(); got != want {
			t.Errorf("%s: at most %d, want %d", text, got, want)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 10_000 {
			if n := l.draw(rng); n < 1 || n > want {
				t.Fatalf("%s: %d", text, n)
			}
		}
	}
}
