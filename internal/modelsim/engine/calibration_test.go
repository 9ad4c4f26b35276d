package engine

import (
	"math"
	"testing"
	"time"
)

// TestCalibration runs closed loops against the default engine in virtual time and compares them with the same loops
// against a real vLLM (0.32 on two CPU cores, max-num-seqs 8, 32 output tokens each).
func TestCalibration(t *testing.T) {
	const tolerance = 0.15
	measured := []struct {
		inFlight  int
		perSecond float64
		p50       time.Duration
	}{
		{1, 5.9, 159 * time.Millisecond},
		{2, 10.8, 183 * time.Millisecond},
		{4, 18.4, 213 * time.Millisecond},
		{8, 31.2, 269 * time.Millisecond},
		{16, 33.6, 460 * time.Millisecond},
		{32, 32.8, 1013 * time.Millisecond},
	}
	for _, m := range measured {
		// The client's turnaround, from an answer's end to the next request's arrival at the engine, is the time of
		// HTTP and the API server: streamed headers were measured after 3 to 12 ms.
		got := closedLoop(t, TinyVLLM(), Job{Prompt: 32, Output: 32}, m.inFlight, 3*time.Millisecond, 5*time.Minute)
		rateError := got.perSecond/m.perSecond - 1
		p50Error := float64(got.p50)/float64(m.p50) - 1
		t.Logf("%2d in flight: %5.1f/s (real %5.1f, %+5.1f %%), p50 %4d ms (real %4d, %+5.1f %%)", m.inFlight,
			got.perSecond, m.perSecond, 100*rateError, got.p50.Milliseconds(), m.p50.Milliseconds(), 100*p50Error)
		if math.Abs(rateError) > tolerance || math.Abs(p50Error) > tolerance {
			t.Errorf("%d in flight: outside %.0f %% of the real engine", m.inFlight, 100*tolerance)
		}
	}
}

// TestReference compares the engine of the routing figures with its own description.
func TestReference(t *testing.T) {
	cfg := Reference()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	const output = 100
	took := func(inFlight, prompt int) time.Duration {
		return closedLoop(t, cfg, Job{Prompt: prompt, Output: output}, inFlight, 0, time.Hour).p50
	}
	decode := func(sequences int) time.Duration {
		return output * (12*time.Millisecond + time.Duration(sequences)*60*time.Microsecond)
	}
	for _, inFlight := range []int{1, 16, 64} {
		if got, want := took(inFlight, 1), decode(inFlight); got < want || got > want+want/50 {
			t.Errorf("%d in flight: an answer takes %v, want %v", inFlight, got, want)
		}
	}
	// A long prompt alone: its own time, and those of its three parts' steps.
	if got, want := took(1, 20_000), 20_000*time.Second/15_928+2*12*time.Millisecond+decode(1); (got - want).Abs() > want/100 {
		t.Errorf("a prompt of 20,000 tokens takes %v, want %v", got, want)
	}
}
