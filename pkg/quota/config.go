package quota

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Limit is a quota: the tokens that an account may use in a window. Zero tokens mean no quota.
type Limit struct {
	// Tokens is from 0 (no quota) to MaxTokens.
	Tokens int64
	// Window is from MinWindow to MaxWindow.
	Window time.Duration
}

// None reports whether there is no quota.
func (l Limit) None() bool { return l.Tokens == 0 }

// The ranges of a Limit.
const (
	MaxTokens = 1_000_000_000_000
	MinWindow = time.Second
	MaxWindow = 31 * 24 * time.Hour
)

// Config has the quotas.
type Config struct {
	// Tenants has the quotas of tenants, by identity, and Roles the quota of each tenant in a role, by the role's name.
	Tenants map[string]Limit `graph:"key"`
	Roles   map[string]Limit
	// MostAccounts is the largest number of accounts, at least 1.
	MostAccounts int
}

// DefaultConfig returns a configuration without quotas.
func DefaultConfig() Config { return Config{MostAccounts: 100_000} }

// Limit returns the quota of a tenant in a role: its own, or else the role's.
func (c *Config) Limit(tenant, role string) Limit {
	if l := c.Tenants[tenant]; !l.None() {
		return l
	}
	return c.Roles[role]
}

// Validate reports every problem at once, as invalid.Problems.
func (c *Config) Validate() error {
	var ps invalid.Problems
	invalid.AtLeast(&ps, invalid.At("MostAccounts"), c.MostAccounts, 1)
	for _, tenant := range slices.Sorted(maps.Keys(c.Tenants)) {
		c.Tenants[tenant].check(&ps, invalid.At("Tenants", invalid.Key(tenant)))
	}
	for _, role := range slices.Sorted(maps.Keys(c.Roles)) {
		c.Roles[role].check(&ps, invalid.At("Roles", invalid.Key(role)))
	}
	return ps.Err()
}

func (l Limit) check(ps *invalid.Problems, at invalid.Path) {
	if l == (Limit{}) {
		return
	}
	invalid.Within(ps, at.At("Tokens"), l.Tokens, 0, MaxTokens)
	invalid.Within(ps, at.At("Window"), l.Window, MinWindow, MaxWindow)
}
