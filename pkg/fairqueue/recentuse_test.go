package fairqueue

import (
	"testing"
	"time"
)

// A charge is recent in its period and in the 29 after it, wherever in its period it is made.
func TestPeriodsOfTheWindow(t *testing.T) {
	c := newCluster(t, func(c *Config) { c.FairShare.Window = 30 * time.Second })
	c.uses("a", 1, 1)
	for second := range 40 {
		c.advance(time.Second - time.Nanosecond) // the end of the period
		c.uses("a", 1, 1)
		c.advance(time.Nanosecond) // the begin of the next one
		c.uses("a", 1, 1)
		want := int64(min(2*(second+1)+1, 2*recentPeriods-1))
		if got := c.user("a").Recent; got != want {
			t.Fatalf("after %d s: %d recent, want %d", second+1, got, want)
		}
	}
}

// Burst credit grows by BurstRate up to BurstCap, also where the product of rate and time has more than 64 bits.
func TestBurstCreditGrows(t *testing.T) {
	for _, x := range []struct {
		rate, most Cost
		rest       time.Duration
		want       int64 // in millionths
	}{
		{100, 1000, 3 * time.Second, 300 * millionth},
		{100, 1000, time.Hour, 1000 * millionth},
		{100, MaxCost, 24 * 365 * time.Hour, min(100*365*24*3600, int64(MaxCost)) * millionth},
		{MaxCost, MaxCost, time.Millisecond, int64(MaxCost) * millionth / 1000},
		{MaxCost, MaxCost, time.Minute, int64(MaxCost) * millionth},
	} {
		b := burst{rests: true}
		if got := b.at(x.rest, &FairShareConfig{BurstRate: x.rate, BurstCap: x.most}); got != x.want {
			t.Errorf("rate %d, cap %d, %v: %d, want %d", x.rate, x.most, x.rest, got, x.want)
		}
	}
}
