package engine

import (
	"strings"
	"testing"
	"time"
)

func TestValidateNamesTheField(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"Slots":            func(c *Config) { c.Slots = -1 },
		"ServiceTime":      func(c *Config) { c.ServiceTime = time.Second }, // beside Step
		"Step.Base":        func(c *Config) { c.Step.Base = -1 },
		"Step.PerSequence": func(c *Config) { c.Step.PerSequence = -1 },
		"Step.PerToken":    func(c *Config) { c.Step.PerToken = -1 },
		"TokenBudget":      func(c *Config) { c.TokenBudget = -1 },
		"BlockSize":        func(c *Config) { c.BlockSize = 0 },
		"Blocks":           func(c *Config) { c.Blocks = -1 },
		"AbortDelay":       func(c *Config) { c.AbortDelay = -1 },
		"Jitter":           func(c *Config) { c.Jitter = 1.5 },
	} {
		cfg := TinyVLLM()
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), field+" is") {
			t.Errorf("%s out of range: error %v, want one that names it", field, err)
		}
	}
	if err := TinyVLLM().Validate(); err != nil {
		t.Error(err)
	}
}

func TestBrokenContractsPanic(t *testing.T) {
	cfg := roundSteps(1)
	cfg.BlockSize, cfg.Blocks = 4, 2
	for name, breach := range map[string]func(*Engine){
		"no prompt":      func(e *Engine) { e.Submit(epoch, Job{Output: 1}) },
		"no output":      func(e *Engine) { e.Submit(epoch, Job{Prompt: 1}) },
		"never fits":     func(e *Engine) { e.Submit(epoch, Job{Prompt: 8, Output: 1}) },
		"time backwards": func(e *Engine) { e.Advance(epoch); e.Advance(epoch.Add(-1)) },
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			breach(e)
		})
	}
}
