package modelsim

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
)

// Config describes a simulated model server. Start from [DefaultConfig], [TinyVLLM], [Fixed] or [Instant].
type Config struct {
	// Address is where [Start] listens; empty means 127.0.0.1 and a free port.
	Address string

	// Model is the name of the served model. Requests for another model get 404; a request without a model gets this
	// one.
	Model string

	// Engine configures the slots and the timing.
	Engine engine.Config

	// Punctual keeps the engine's times accurate to about 0.1 ms; the runtime's timers fire up to 1 ms late, and
	// several at once. It occupies a thread for the last milliseconds before each event, and needs the real clock.
	Punctual bool

	// Instant answers at once from prepared bytes: Engine and MaxModelLen are ignored, the request is not parsed, and
	// the usage is one prompt token and DefaultOutputTokens.
	Instant bool

	// MaxModelLen is the largest total of prompt and output tokens; longer requests get 400. Zero means no limit.
	MaxModelLen int

	// PrefixCaching keeps the blocks of prompts in the KV cache for prompts with the same beginning, like vLLM. Only
	// with Engine.Step.
	PrefixCaching bool

	// PromptTokensDetails reports the cached tokens of prompts in the usage of the OpenAI APIs, like vLLM with
	// --enable-prompt-tokens-details.
	PromptTokensDetails bool

	// KVEvents is the address at which [Start] publishes the changes of the KV cache over ZeroMQ, in vLLM's format;
	// empty: none.
	KVEvents string

	// MaxBodyBytes is the largest body of a request; a larger one gets 413. Zero means no limit.
	MaxBodyBytes int

	// Faults serves [FaultsPath], where clients inject faults.
	Faults bool

	// BytesPerToken is the number of JSON bytes of a prompt that make a token, at least 1.
	BytesPerToken int

	// DefaultOutputTokens is the output length of requests that set no limit, at least 1.
	DefaultOutputTokens int

	// EarlyStop is the probability, at each token, that the answer ends by itself before its limit; 0 to 1. Requests
	// with ignore_eos are not cut short.
	EarlyStop float64

	// Seed determines texts, IDs and early stops.
	Seed uint64

	// Quirk applies to all answers, unless [Handler.Inject] overrides it.
	Quirk Quirk

	// Records is the number of the latest requests that [Handler.Records] keeps; zero keeps none.
	Records int

	// RecordBodyBytes is the part of each body that a record keeps.
	RecordBodyBytes int

	// TagHeader names the request header whose value is a record's tag, such as x-request-id or the tenant's.
	TagHeader string
}

// DefaultConfig is [TinyVLLM].
func DefaultConfig() Config { return TinyVLLM() }

// TinyVLLM is calibrated on a real vLLM 0.32 with a tiny model on two CPU cores: 8 slots; 32 output tokens take 160 ms
// alone and 250 ms in a full batch; at most 33 such requests per second.
func TinyVLLM() Config {
	return Config{
		Model:               "tiny",
		Engine:              engine.TinyVLLM(),
		MaxModelLen:         2048,
		BytesPerToken:       4,
		DefaultOutputTokens: 32,
		Seed:                1,
		Records:             256,
		RecordBodyBytes:     4096,
		TagHeader:           "x-request-id",
	}
}

// Fixed serves each request in the same time, whatever its length, in the given number of slots. A streamed answer's
// tokens are spread evenly over that time. An abort frees the slot at once.
func Fixed(slots int, serviceTime time.Duration) Config {
	cfg := TinyVLLM()
	cfg.Engine = engine.Config{Slots: slots, ServiceTime: serviceTime, BlockSize: 16, Blocks: 16384, Seed: 1}
	cfg.MaxModelLen = 0
	return cfg
}

// Instant answers at once and keeps no records.
func Instant() Config {
	cfg := Fixed(0, 0)
	cfg.Instant = true
	cfg.DefaultOutputTokens = 8
	cfg.Records = 0
	return cfg
}

// Validate reports every field that is out of range.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, field string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("modelsim: %s is %v, want %s", field, value, want))
		}
	}
	check(c.Model != "", "Model", `""`, "a name")
	check(c.MaxModelLen >= 0, "MaxModelLen", c.MaxModelLen, "0 or more")
	check(c.MaxBodyBytes >= 0, "MaxBodyBytes", c.MaxBodyBytes, "0 or more")
	check(!c.PrefixCaching || c.Engine.BlockSize > 0, "PrefixCaching", c.PrefixCaching, "false without Engine.BlockSize")
	check(c.BytesPerToken >= 1, "BytesPerToken", c.BytesPerToken, "1 or more")
	check(c.DefaultOutputTokens >= 1, "DefaultOutputTokens", c.DefaultOutputTokens, "1 or more")
	check(c.EarlyStop >= 0 && c.EarlyStop <= 1, "EarlyStop", c.EarlyStop, "between 0 and 1")
	check(c.Records >= 0, "Records", c.Records, "0 or more")
	check(c.RecordBodyBytes >= 0, "RecordBodyBytes", c.RecordBodyBytes, "0 or more")
	return errors.Join(append(errs, c.Quirk.validate(), c.Engine.Validate())...)
}
