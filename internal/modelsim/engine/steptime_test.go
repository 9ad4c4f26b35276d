package engine

import (
	"testing"
	"time"
)

// roundSteps returns a formula for computing by hand: 10 ms, 2 ms per sequence, 1 ms per further token.
func roundSteps(slots int) Config {
	return Config{Slots: slots, Step: StepTime{Base: 10 * ms, PerSequence: 2 * ms, PerToken: ms}}
}

func TestStepFormula(t *testing.T) {
	s := newScript(t, roundSteps(2))
	s.submit(Job{Prompt: 5, Output: 3, Streamed: true})
	s.advance(time.Second)
	// Prefill of 5 tokens: 10 + 2 + 4. Then decode steps of 10 + 2.
	s.want("16: 1 has 1", "28: 1 has 2", "40: 1 finished")
}

func TestArrivalsJoinAtTheNextStep(t *testing.T) {
	s := newScript(t, roundSteps(2))
	s.submit(Job{Prompt: 1, Output: 3, Streamed: true})
	s.advance(5 * ms)
	s.submit(Job{Prompt: 4, Output: 2, Streamed: true})
	s.wantLoad(1, 1)
	s.advance(time.Second)
	// The step from 12 decodes one token and computes four of the new prompt: 10 + 2×2 + 3.
	s.want("12: 1 has 1", "29: 1 has 2", "29: 2 has 1", "43: 1 finished", "43: 2 finished")
}

func TestAFullBatchKeepsTheOthersWaiting(t *testing.T) {
	s := newScript(t, roundSteps(1))
	s.submit(Job{Prompt: 1, Output: 2})
	s.submit(Job{Prompt: 1, Output: 2})
	s.advance(time.Second)
	s.want("24: 1 finished", "48: 2 finished")
}

func TestTokenBudgetCutsPrefill(t *testing.T) {
	cfg := roundSteps(2)
	cfg.TokenBudget = 4
	s := newScript(t, cfg)
	s.submit(Job{Prompt: 6, Output: 1})
	s.submit(Job{Prompt: 3, Output: 1})
	s.advance(time.Second)
	// 4 of the first prompt: 10 + 2 + 3. Its other 2 and 2 of the second: 10 + 2×2 + 2. The second's last: 12.
	s.want("31: 1 finished", "43: 2 finished")
}

func TestAbortWithinAStep(t *testing.T) {
	s := newScript(t, roundSteps(1))
	first := s.submit(Job{Prompt: 1, Output: 9, Streamed: true})
	s.submit(Job{Prompt: 1, Output: 1})
	s.advance(5 * ms)
	s.abort(first)
	s.wantLoad(0, 1)
	s.advance(time.Second)
	// The step in progress ends at its time, and the next one uses the freed slot.
	s.want("5: 1 aborted", "24: 2 finished")
}

func TestFullCachePreemptsTheLastAdmitted(t *testing.T) {
	cfg := roundSteps(2)
	cfg.BlockSize, cfg.Blocks = 2, 4
	s := newScript(t, cfg)
	s.submit(Job{Prompt: 4, Output: 4, Streamed: true}) // 8 tokens at its end: all 4 blocks
	s.submit(Job{Prompt: 3, Output: 1, Streamed: true}) // 2 blocks at its prefill
	s.advance(time.Second)
	// The second may join in the step from 15, when the first needs its third block. One block is left, too few. So the
	// second waits, without preemption, until the first has ended.
	s.want("15: 1 has 1", "27: 1 has 2", "39: 1 has 3", "51: 1 finished", "65: 2 finished")
	if got := s.e.Load().Preemptions; got != 0 {
		t.Errorf("%d preemptions, want none: it never joined the batch", got)
	}

	s = newScript(t, cfg)
	s.submit(Job{Prompt: 2, Output: 5, Streamed: true}) // 6 tokens computed at its end: 3 blocks
	s.submit(Job{Prompt: 2, Output: 3, Streamed: true}) // 2 blocks while it decodes
	s.advance(time.Second)
	// Both run from 13, with 2 blocks each while they decode. At 42 the first needs a third block. The second loses its
	// two blocks and its tokens' cache, and waits until the first has freed the cache. Then its prompt and its one
	// token are computed again, without a report.
	s.want("13: 1 has 1", "28: 1 has 2", "28: 2 has 1", "42: 1 has 3", "42: 2 has 2",
		"54: 1 has 4", "66: 1 finished", "81: 2 finished")
	if got := s.e.Load(); got.Preemptions != 1 || got.GeneratedTokens != 8 {
		t.Errorf("%+v, want 1 preemption and 8 tokens", got)
	}
}
