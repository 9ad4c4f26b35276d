package flowcontrol

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// inTokens has four slots, and flows that share by actual cost.
func inTokens(c *Config) {
	perBackend(c, 4, 4)
	c.Queue.Discipline = fairqueue.VTC
	c.Queue.TotalCapacity, c.Queue.FlowCapacity = 1000, 1000
	c.Queue.CapacityMode, c.EnqueueAll = fairqueue.Shared, true
}

// A flow that holds one slow answer open for an hour, charged much too high, and then sends a burst has banked nothing:
// it is never further ahead than the bound of vtc, even if the refund comes in the middle of the burst.
func TestHourAndBurst(t *testing.T) {
	const cost, held, used, slots = 200, 5000, 100, 4
	// (D+1)(l_f + l_g) of exact costs, and twice the error of the held answer.
	const bound = (slots+1)*(cost+cost) + 2*(held-used)
	inBubble(t, ready(1), inTokens, func(b *bench) {
		var mu sync.Mutex
		served := map[string]int{} // since the burst began
		over, ahead, burst := false, 0, 0
		serve := func(flow string, more func() bool) {
			for more() {
				l, err := b.TryEnqueue(b.t.Context(), &Request{Flow: flow, Cost: cost, Placement: pool})
				if err != nil {
					b.t.Error(err)
					return
				}
				mu.Lock()
				served[flow] += cost
				ahead = max(ahead, served["attacker"]-served["honest"])
				mu.Unlock()
				time.Sleep(time.Second)
				l.OnRequestComplete(Completion{Status: 200, Cost: cost})
			}
		}
		until := func(stop func() bool) func() bool {
			return func() bool {
				mu.Lock()
				defer mu.Unlock()
				return !stop()
			}
		}
		var clients sync.WaitGroup
		for range 16 {
			clients.Go(func() { serve("honest", until(func() bool { return over })) })
		}
		stream, err := b.TryEnqueue(b.t.Context(), &Request{Flow: "attacker", Cost: held, Placement: pool})
		if err != nil {
			b.t.Fatal(err)
		}
		time.Sleep(time.Hour)
		mu.Lock()
		clear(served)
		mu.Unlock()
		const requests = 1000
		var attackers sync.WaitGroup
		for range 16 {
			attackers.Go(func() { serve("attacker", until(func() bool { burst++; return burst > requests })) })
		}
		time.Sleep(10 * time.Second)
		stream.OnRequestComplete(Completion{Status: 200, Cost: used})
		attackers.Wait()
		mu.Lock()
		over = true
		furthest := ahead
		got := fmt.Sprintf("the attacker has had %d, the honest one %d, and was ahead by %d", served["attacker"], served["honest"], furthest)
		ratio := float64(served["attacker"]) / float64(served["honest"])
		mu.Unlock()
		b.t.Log(got)
		if ratio > 1.05 || furthest > bound {
			b.t.Errorf("%s: want at most 5 %% more, and at no moment more than %d", got, bound)
		}
		clients.Wait()
		synctest.Wait()
	})
}

// A flow of requests that claim to be huge, and that engines refuse at once, does not delay others by sending several:
// charges refunded a moment later put no flow behind that arrives meanwhile.
func TestRefusedGiants(t *testing.T) {
	const claimed, kept, cost, minute = 200_000, 5_000, 200, 60 * time.Second
	var answers []int
	for _, attackers := range []int{1, 4, 16} {
		inBubble(t, ready(1), func(c *Config) {
			inTokens(c)
			c.Stock.LowerBoundPerBackend, c.Stock.WatermarkPerBackend, c.Stock.UpperBoundPerBackend = 16, 16, 16
			c.Stock.Tokens.Watermark, c.Stock.Tokens.Lower, c.Stock.Tokens.Upper = 2000, 2000, 2000
		}, func(b *bench) {
			var honest atomic.Int64
			ctx, stop := context.WithTimeout(b.t.Context(), minute)
			defer stop()
			serve := func(flow string, claims, costs fairqueue.Cost, takes time.Duration) (n int64) {
				for {
					select {
					case <-ctx.Done():
						return n
					default:
					}
					l, err := b.TryEnqueue(b.t.Context(), &Request{Flow: flow, Cost: claims, Tokens: stock.Tokens(claims / 2), Placement: pool})
					if err != nil {
						b.t.Error(err)
						return n
					}
					time.Sleep(takes)
					l.OnRequestComplete(Completion{Status: 200, Cost: costs})
					n++
				}
			}
			var clients sync.WaitGroup
			for range 16 {
				clients.Go(func() { honest.Add(serve("honest", cost, cost, 100*time.Millisecond)) })
			}
			time.Sleep(100 * time.Millisecond)
			for range attackers {
				clients.Go(func() { serve("attacker", claimed, kept, 25*time.Millisecond) })
			}
			clients.Wait()
			answers = append(answers, int(honest.Load()))
		})
	}
	t.Logf("honest answers beside 1, 4 and 16 clients: %v", answers)
	if least := answers[0] * 9 / 10; answers[0] < 5000 || answers[1] < least || answers[2] < least {
		t.Errorf("want at least 5,000 answers, and hardly less beside more of them: %v", answers)
	}
}

// identities is the number of identities in TestMillionIdentities; `make million` uses a million.
var identities = flag.Int("identities", 100_000, "how many identities TestMillionIdentities uses")

// A million identities, used once each, some after a wait, leave nothing behind: neither counters nor metrics.
func TestMillionIdentities(t *testing.T) {
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	inBubble(t, ready(1), inTokens, func(b *bench) {
		var queued atomic.Int64
		use := func(from, to int) {
			var clients sync.WaitGroup
			for client := range 16 { // for four slots
				clients.Go(func() {
					for i := from + client; i < to; i += 16 {
						l, err := b.TryEnqueue(b.t.Context(), &Request{Flow: fmt.Sprint("identity-", i), Cost: 100, Placement: pool})
						if err != nil {
							b.t.Error(err)
							return
						}
						if _, waited := l.Queued(); waited {
							queued.Add(1)
						}
						runtime.Gosched() // others come, and wait
						l.OnRequestComplete(Completion{Status: 200, Cost: fairqueue.Cost(50 + i%100)})
					}
				})
			}
			clients.Wait()
		}
		use(0, 20_000) // fills all that is kept
		before := heap()
		use(20_000, 20_000+*identities)
		grown := heap() - before
		b.t.Logf("%d identities left %d bytes; %d have waited", *identities, grown, queued.Load())
		if grown > 256<<10 || queued.Load() < int64(*identities/10) {
			b.t.Errorf("%d identities left %d bytes, and %d have waited", *identities, grown, queued.Load())
		}
		if n := len(b.scrape("weir_flow_served_cost_total")); n > 2*DefaultConfig().MaxLabels+1 {
			b.t.Errorf("%d flows have metrics", n)
		}
	})
}
