package extproc

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-epp/weir/pkg/estimate"
)

func TestDefaultConfigIsValid(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

// All problems are reported at once, each with its field, its value and the valid values; those of reading requests
// first.
func TestValidateNamesEveryField(t *testing.T) {
	cfg := DefaultConfig()
	cfg.FlowKey = nil
	cfg.Cost, cfg.Usage = "token", "log"
	cfg.Tokens = estimate.Config{Weights: estimate.Weights{Input: 1}, Quantile: 900_000, Window: 64, ColdOutput: 1, ColdRate: 1}
	cfg.Responses = Responses{Preset: "teapot", Status: map[string]int{"dispatched": 500, "queue-full": 99, "shed": 599, "typo": 500}}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	const reasons = "must be one of flow-full, queue-full, shed, displaced, ttl-expired, preempted, client-cancelled, " +
		"deadline-exceeded, no-endpoint, draining, bad-request, too-large, body-timeout, no-memory, internal, unknown-model, quota-exceeded, unsupported"
	want := []string{
		`FlowKey: []: must name at least one source`,
		`Cost: "token": must be one of requests, tokens, uncached`,
		`Usage: "log": must be one of auto, trailers, body, none`,
		`Tokens.StockWeights.Input: 0: must be above 0, since Tokens.StockWeights.Output is 0 too`,
		`Tokens.ColdRatio: 0: must be from 1 to 8`,
		`Responses.Preset: "teapot": must be one of seed, gateway, smg, dynamo`,
		`Responses.Status["dispatched"]: "dispatched": ` + reasons,
		`Responses.Status["queue-full"]: 99: must be a status from 400 to 599`,
		`Responses.Status["typo"]: "typo": ` + reasons,
	}
	if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An invalid configuration changes nothing. A valid one applies to streams that begin after it.
func TestSetConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.FlowKey = []string{"header:x-a"} })
		before := b.open("NONE/NONE")
		cfg := DefaultConfig()
		cfg.PassOn = "drop"
		if err := b.server.SetConfig(cfg); err == nil {
			t.Error("accepted")
		}
		before.say(chat("x-a", "1", "x-b", "2"))
		before.heard()
		cfg = DefaultConfig()
		cfg.FlowKey = []string{"header:x-b"}
		if err := b.server.SetConfig(cfg); err != nil {
			t.Error(err)
		}
		after := b.open("NONE/NONE")
		after.say(chat("x-a", "1", "x-b", "2"))
		after.heard()
		if f := []string{b.controller.requests[0].Flow, b.controller.requests[1].Flow}; f[0] != "1" || f[1] != "2" {
			t.Errorf("flows %q", f)
		}
		before.end()
		after.settled(2)
	})
}
