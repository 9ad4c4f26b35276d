package flowcontrol

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// The stream reports a request's cost once, at its end. The class pays the difference, so the other class goes
// accordingly more often.
func TestUsageCountsOnce(t *testing.T) {
	change := func(c *Config) {
		c.Stock.SlotsPerBackend = 1
		c.Queue.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 1}, {Name: "y", Quantum: 1}}
		c.Queue.Cursor = fairqueue.Advance
	}
	for name, test := range map[string]struct {
		end  func(*Lease)
		want string
	}{
		"not known":   {func(l *Lease) { l.OnRequestComplete(Completion{}) }, "yxyx"},
		"at the end":  {func(l *Lease) { l.OnRequestComplete(Completion{Cost: 3}) }, "yyyx"},
		"after it":    {func(l *Lease) { l.OnRequestComplete(Completion{}); l.OnRequestComplete(Completion{Cost: 3}) }, "yxyx"},
		"known again": {func(l *Lease) { l.OnRequestComplete(Completion{Cost: 3}); l.OnRequestComplete(Completion{Cost: 1}) }, "yyyx"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ready(1), change, func(b *bench) {
				of := func(class string) *arrival {
					r := one("f")
					r.Cost, r.Path = 1, &fairqueue.Path{Class: class}
					return b.arrives(b.t.Context(), r)
				}
				holder := of("y")
				first := of("x")
				waiting := map[string][]*arrival{}
				for range 4 {
					waiting["x"], waiting["y"] = append(waiting["x"], of("x")), append(waiting["y"], of("y"))
				}
				complete(holder.lease)
				b.want(first, "dispatched")
				test.end(first.lease)
				for _, class := range test.want {
					next := waiting[string(class)][0]
					waiting[string(class)] = waiting[string(class)][1:]
					b.want(next, "dispatched")
					complete(next.lease)
				}
				b.Drain()
				for _, a := range append(waiting["x"], waiting["y"]...) {
					if a.lease != nil { // it was granted by the last completion
						complete(a.lease)
					}
				}
			})
		})
	}
}

// The stock's tokens are another number than the queue's charge, unless a request names only its cost.
func TestTokensAreNotTheCost(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		ask := func(cost fairqueue.Cost, tokens Tokens) *Lease {
			l, err := b.TryEnqueue(b.t.Context(), &Request{Flow: "f", Cost: cost, Tokens: tokens, Placement: pool})
			if err != nil {
				b.t.Fatal(err)
			}
			return l
		}
		held := func(when string, want Tokens) {
			if got := b.State().Tokens; got != want {
				b.t.Errorf("%s: %d tokens, want %d", when, got, want)
			}
		}
		l := ask(10, 500)
		held("estimated", 500)
		ask(10, 0)
		held("and one without", 510)
		l.OnCost(20, 600)
		held("outgrown", 610)
		l.OnExpected(3)
		held("expected to be cached", 610)
		l.OnRequestComplete(Completion{Cost: 12})
		held("complete", 10)
	})
}
