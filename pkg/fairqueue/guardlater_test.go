package fairqueue

import (
	"testing"
	"time"
)

// A starvation threshold that begins while requests wait counts for them: the oldest of the tier goes first, of
// whichever tenant, user and further level it is.
func TestGuardBeginsWhileRequestsWait(t *testing.T) {
	for levels := 1; levels <= 3; levels++ {
		cfg := fourTiers(1_000_000)
		cfg.Levels = levels
		for i := range cfg.Tiers {
			cfg.Tiers[i].StarvationThreshold = 0
		}
		q := queue(t, cfg)
		request := func(tier int, tenant string, under ...string) *Request {
			r := of(append([]string{tenant}, under[:levels-1]...)...)
			r.Tier, r.Cost = tier, 1
			return r
		}
		for range 20 {
			mustPush(t, q, request(1, "flood", "u", "v"))
		}
		last := request(3, "last", "u", "v")
		push := func(r *Request, after time.Duration) {
			if _, err := q.Push(start.Add(after), r); err != nil {
				t.Fatal(err)
			}
		}
		oldest := request(3, "tenant", "quiet", "x")
		push(oldest, time.Millisecond)
		push(request(3, "tenant", "quiet", "y"), 2*time.Millisecond)
		push(request(3, "tenant", "loud", "x"), 3*time.Millisecond)
		push(last, 4*time.Millisecond)
		later := fourTiers(1_000_000)
		later.Levels = levels
		if err := q.Reconfigure(later); err != nil {
			t.Fatal(err)
		}
		c := q.Peek(start.Add(time.Second+time.Millisecond), Allowed{Tiers: AllTiers, Promote: true})
		if c.Request != oldest || !c.Promoted {
			t.Errorf("%d levels: %+v goes, promoted %v", levels, c.Request, c.Promoted)
		}
	}
}
