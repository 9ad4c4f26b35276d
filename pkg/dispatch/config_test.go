package dispatch

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/quota"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A problem of a configuration names the field and its value, and a reload with it is refused.
func TestProblemsOfAConfiguration(t *testing.T) {
	twoClasses := func(c *Config) {
		c.Queue.Classes = []fairqueue.ClassConfig{{Name: "a", Quantum: 1}, {Name: "b", Quantum: 1}}
		c.Classes = []ClassConfig{{Busy: scheduling.BusyRule{PrefillTokens: new(int64(10))}}, {}}
	}
	b := newBench(t, []int{1}, func(*Config) {})
	for want, set := range map[string]func(*Config){
		"Quotas.MostAccounts: 0: must be at least 1\nQuotas.Tenants[\"a\"].Tokens: -1: must be from 0 to 1000000000000\n" +
			"Quotas.Tenants[\"a\"].Window: 1ms: must be from 1s to 744h": func(c *Config) {
			c.Quotas = quota.Config{Tenants: map[string]quota.Limit{
				"a": {Tokens: -1, Window: time.Millisecond}, "b": {Tokens: quota.MaxTokens, Window: quota.MaxWindow}, "c": {},
			}}
		},
		"Limiter.Rate: 0.000999: must be 0 or from 0.001 to 1000000\nLimiter.Burst: 0: must be from 1 to 1000000": func(c *Config) {
			c.Limiter = LimiterConfig{Rate: 999, Burst: 0}
		},
		"Classes[0].Busy.PrefillTokens: 10: must not be given where Tiers[0].CanPreempt is true": func(c *Config) {
			twoClasses(c)
			c.Tiers[0].CanPreempt = true
		},
		"Classes: 1 classes: must be none, or as many as Queue.Classes (2)": func(c *Config) {
			twoClasses(c)
			c.Classes = c.Classes[:1]
		},
	} {
		cfg := DefaultConfig()
		set(&cfg)
		if err := cfg.Validate(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if err := b.Configure(b.clock, cfg); err == nil || err.Error() != want {
			t.Errorf("a reload: got %v\nwant %s", err, want)
		}
	}
}
