package fairqueue

import (
	"strings"
	"testing"
	"time"
)

// Validate names all wrong fields at once.
func TestValidate(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	bad := Config{
		TotalCapacity: 10, FlowCapacity: 11, FlowCapacities: map[string]int{"a": 0, "b": 12},
		Weights: map[string]Weight{"a": MinWeight - 1, "b": MaxWeight + 1, "c": MaxWeight}, QueueTTL: 0, PromotionBudget: 1_000_001,
		Tiers: []TierConfig{
			{Name: "x"},
			{Name: "x", Weight: -1, QueueTimeout: -time.Second, StarvationThreshold: -1, QueueSize: 1 << 40},
			{QueueSize: NoLimit - 1},
		},
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("no problem seen")
	}
	want := strings.Join([]string{
		"FlowCapacity: 11: must be at most TotalCapacity (10)",
		`FlowCapacities["a"]: 0: must be at least 1`,
		`FlowCapacities["b"]: 12: must be at most TotalCapacity (10)`,
		`Weights["a"]: 0.000999: must be from 0.001 to 1000000`,
		`Weights["b"]: 1000000.000001: must be from 0.001 to 1000000`,
		"QueueTTL: 0s: must be above 0s",
		"PromotionBudget: 1.000001: must be from 0 to 1",
		`Tiers[1].Name: "x": must be unique`,
		"Tiers[1].Weight: -0.000001: must be from 0.001 to 1000000",
		"Tiers[1].QueueSize: 1099511627776: must be from 0 to 2147483647",
		"Tiers[1].QueueTimeout: -1s: must be above 0s",
		"Tiers[1].StarvationThreshold: -1ns: must be above 0s",
		`Tiers[2].Name: "": must be given`,
		"Tiers[2].QueueSize: -2: must be from 0 to 2147483647",
	}, "\n")
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for _, tiers := range []int{0, MaxTiers + 1} {
		cfg.Tiers = make([]TierConfig, tiers)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "Tiers: ") {
			t.Errorf("%d tiers: %v", tiers, err)
		}
	}
}

// A queue that refuses a configuration does not change, even if tiers are draining.
func TestRefusedReloadChangesNothing(t *testing.T) {
	q := queue(t, fourTiers(0))
	mustPush(t, q, &Request{Flow: "f", Tier: 1, Cost: 1})
	for want, change := range map[string]func(c *Config){
		"CapacityMode: cannot change at run time": func(c *Config) { c.CapacityMode = Reserved },
		"TierMode: cannot change at run time":     func(c *Config) { c.TierMode = Weighted },
		"Discipline: cannot change at run time":   func(c *Config) { c.Discipline = OneFlow },
		"Levels: cannot change at run time":       func(c *Config) { c.Levels = 2 },
		"TotalCapacity: 0: must be at least 1":    func(c *Config) { c.TotalCapacity = 0 },
	} {
		cfg := fourTiers(500_000)
		cfg.Tiers = cfg.Tiers[:1]
		change(&cfg)
		if err := q.Reconfigure(cfg); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if len(q.Tiers()) != 4 || q.Tiers()[1].Removed || q.config.PromotionBudget != 0 || q.TierID("bulk") != 3 {
			t.Errorf("%s: something changed", want)
		}
	}
	// Draining tiers keep their identifiers. If none is left for a new tier, the whole reload is refused.
	for generation := range 3 {
		cfg := fourTiers(0)
		cfg.Tiers = nil
		for i := range MaxTiers {
			cfg.Tiers = append(cfg.Tiers, TierConfig{Name: strings.Repeat("x", generation*100+i+1), QueueSize: -1})
		}
		err := q.Reconfigure(cfg)
		if (err != nil) != (generation > 0) { // 4 + 32, then 32 more do not fit
			t.Errorf("generation %d: %v", generation, err)
		}
		if want := "Tiers: 68 tiers with those that still drain: must be at most 64"; generation == 1 && err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		var audit audit
		audit.check(t, q)
	}
}
