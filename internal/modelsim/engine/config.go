package engine

import (
	"errors"
	"fmt"
	"time"
)

// StepTime is the cost of one step of the batch; see the package comment for the formula.
type StepTime struct {
	// Base is the cost of a step, however small its batch.
	Base time.Duration
	// PerSequence is added for each sequence in the batch.
	PerSequence time.Duration
	// PerToken is added for each token beyond the first of a sequence: the cost of prefill.
	PerToken time.Duration
}

// Config describes an engine. The zero value is an engine without limits that answers at once.
type Config struct {
	// Slots is the largest number of sequences in the batch (vLLM's max-num-seqs). Zero is no limit.
	Slots int

	// ServiceTime is the time for which each sequence holds its slot when Step is zero.
	ServiceTime time.Duration

	// Step, when not zero, replaces ServiceTime by the calibrated model of continuous batching.
	Step StepTime

	// TokenBudget is the largest number of tokens that one step computes (vLLM's max-num-batched-tokens); a longer
	// prompt is computed in several steps. Zero is no limit. Only with Step.
	TokenBudget int

	// BlockSize is the number of tokens in one KV cache block, and Blocks the number of blocks. With Blocks zero the
	// cache is unlimited and its usage is always 0.
	BlockSize, Blocks int

	// Adapters is the largest number of different LoRA adapters in a batch (vLLM's max-loras), and of loaded ones; zero
	// is no limit. AdapterLoad is the additional time of a step for each adapter loaded for it. Only with Step.
	Adapters    int
	AdapterLoad time.Duration

	// AbortDelay is the time from the client's disconnect to the end of its work; the slot is held meanwhile.
	AbortDelay time.Duration

	// Jitter spreads each step, or each service time, uniformly by this fraction to either side; 0 to 1.
	Jitter float64

	// Seed determines the jitter.
	Seed uint64
}

// TinyVLLM returns the engine calibrated on a real vLLM 0.32 on two CPU cores: a tiny Llama, 8 batch slots.
func TinyVLLM() Config {
	return Config{
		Slots: 8,
		Step: StepTime{
			Base:        4600 * time.Microsecond,
			PerSequence: 370 * time.Microsecond,
			PerToken:    20 * time.Microsecond,
		},
		TokenBudget: 2048,
		BlockSize:   128,
		Blocks:      16384,
		AbortDelay:  50 * time.Millisecond,
		Seed:        1,
	}
}

// Reference returns the engine of the routing figures: 15,928 prompt tokens per second; a decode step of 12 ms plus 60
// µs per running sequence; 64 slots; prompts computed in parts of 8,192 tokens; room for 600,000 tokens.
func Reference() Config {
	return Config{
		Slots: 64,
		Step: StepTime{
			Base:        12 * time.Millisecond,
			PerSequence: 60 * time.Microsecond,
			PerToken:    time.Second / 15_928,
		},
		TokenBudget: 8192,
		BlockSize:   16,
		Blocks:      600_000 / 16,
		Seed:        1,
	}
}

// Validate reports every field that is out of range.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, field string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("engine: %s is %v, want %s", field, value, want))
		}
	}
	check(c.Slots >= 0, "Slots", c.Slots, "0 or more")
	check(c.ServiceTime >= 0, "ServiceTime", c.ServiceTime, "0 or more")
	check(c.Step.Base >= 0, "Step.Base", c.Step.Base, "0 or more")
	check(c.Step.PerSequence >= 0, "Step.PerSequence", c.Step.PerSequence, "0 or more")
	check(c.Step.PerToken >= 0, "Step.PerToken", c.Step.PerToken, "0 or more")
	check(c.ServiceTime == 0 || c.fixed(), "ServiceTime", c.ServiceTime, "0 when Step is set")
	check(c.TokenBudget >= 0, "TokenBudget", c.TokenBudget, "0 or more")
	check(c.Blocks >= 0, "Blocks", c.Blocks, "0 or more")
	check(c.Blocks == 0 || c.BlockSize > 0, "BlockSize", c.BlockSize, "1 or more when Blocks is set")
	check(c.Adapters >= 0, "Adapters", c.Adapters, "0 or more")
	check(c.AdapterLoad >= 0, "AdapterLoad", c.AdapterLoad, "0 or more")
	check(c.AbortDelay >= 0, "AbortDelay", c.AbortDelay, "0 or more")
	check(c.Jitter >= 0 && c.Jitter <= 1, "Jitter", c.Jitter, "between 0 and 1")
	return errors.Join(errs...)
}

// Fits reports whether the KV cache is large enough for a sequence with these prompt and output tokens.
func (c Config) Fits(prompt, output int) bool {
	return c.Blocks == 0 || c.fixed() || blocksFor(prompt+output, c.BlockSize) <= c.Blocks
}

func (c Config) fixed() bool { return c.Step == StepTime{} }
