package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// client sends its requests one by one, each when the one before has ended.
type client struct {
	flow     func() string
	estimate fairqueue.Cost // at the dispatch, and of the stock
	costs    fairqueue.Cost // in the end
	takes    time.Duration
	status   int   // of its answers; 0: nothing is known of them
	lane     []int // nil: all endpoints

	*Waiter
	came, ends time.Time
	runs       bool
	answers    int
	longest    time.Duration // of its waits
}

// contest is clients that compete for a pool.
type contest struct {
	*shared
	clients []*client
	each    func() // after each answer; may be nil
}

// sends makes a client's next request arrive.
func (c *contest) sends(k *client) {
	k.Waiter, k.came = new(Waiter), c.clock
	c.Arrive(c.clock, k.Waiter, Arrival{Flow: k.flow(), Cost: k.estimate, Tokens: stock.Tokens(k.estimate), Placement: c.placement(k.lane...)})
	if k.Stage() == StageSent {
		c.starts(k)
	}
	c.follow()
}

func (c *contest) starts(k *client) {
	c.Told(k.Waiter)
	k.runs, k.ends, k.longest = true, c.clock.Add(k.takes), max(k.longest, c.clock.Sub(k.came))
}

// follow starts the requests granted by an event.
func (c *contest) follow() {
	for _, w := range slices.Clone(c.Verdicts()) {
		if i := slices.IndexFunc(c.clients, func(k *client) bool { return k.Waiter == w }); !c.clients[i].runs {
			c.starts(c.clients[i])
		}
	}
}

// lasts makes all clients compete for a time.
func (c *contest) lasts(d time.Duration) {
	end := c.clock.Add(d)
	for _, k := range c.clients {
		c.sends(k)
	}
	for {
		var next *client
		for _, k := range c.clients {
			if k.runs && (next == nil || k.ends.Before(next.ends)) {
				next = k
			}
		}
		if next == nil {
			c.t.Fatal("somebody waits, and nobody runs")
		}
		if next.ends.After(end) {
			return
		}
		c.clock, next.runs = next.ends, false
		next.answers++
		c.Answered(c.clock, next.Lease(), next.costs, Answer{Status: next.status})
		c.follow()
		c.sends(next)
		if c.each != nil {
			c.each()
		}
	}
}

// Requests that claim 200,000 tokens each, of a pool of three endpoints that hold 5,000, and that engines refuse after 25 ms,
// may close all endpoints again and again: of any endpoint or pinned to each, of one tenant, or of a dozen at a time that
// are new with each request. A tenant with more clients than the pool takes keeps nine tenths of what it has alone, since
// the slots of an endpoint that is full by tokens are no other's, and one with a single client waits for no more than two
// refusals.
func TestRefusalsStarveNobody(t *testing.T) {
	const refusedAfter, answeredAfter, length = 25 * time.Millisecond, 100 * time.Millisecond, 20 * time.Second
	for _, discipline := range []fairqueue.Discipline{fairqueue.WFQ, fairqueue.VTC, fairqueue.FairShare} {
		for _, attack := range []struct {
			name        string
			clients     int
			pinned, new bool
		}{
			{"one for each endpoint", 3, false, false},
			{"one pinned to each endpoint", 3, true, false},
			{"many", 60, false, false},
			{"many, pinned", 60, true, false},
			{"new tenants", 12, false, true},
			{"new tenants, pinned", 12, true, true},
		} {
			for _, honest := range []int{1, 60} {
				x := &contest{shared: newShared(t, 3, 16, func(cfg *Config) {
					cfg.Stock.Tokens, cfg.Queue.Discipline = tokenBands[0].band, discipline
				})}
				for range honest {
					x.clients = append(x.clients, &client{
						flow: func() string { return "honest" }, estimate: 200, costs: 200, takes: answeredAfter,
					})
				}
				tenants := 0
				for i := range attack.clients {
					k := &client{flow: func() string { return "giant" }, estimate: 200_000, costs: 5000, takes: refusedAfter}
					if attack.pinned {
						k.lane = []int{i % 3}
					}
					if attack.new {
						k.flow = func() string { tenants++; return fmt.Sprint("new ", tenants) }
					}
					x.clients = append(x.clients, k)
				}
				x.lasts(length)
				answers, longest, refusals := 0, time.Duration(0), 0
				for i, k := range x.clients {
					if i < honest {
						answers, longest = answers+k.answers, max(longest, k.longest)
					} else {
						refusals += k.answers
					}
				}
				got := fmt.Sprintf("discipline %d, beside %s, %d clients: %d answers, waits of up to %v; %d refusals",
					discipline, attack.name, honest, answers, longest, refusals)
				if alone := 3 * 16 * int(length/answeredAfter); honest > 1 && answers < alone*90/100 {
					t.Errorf("%s; it has %d alone", got, alone)
				}
				if honest == 1 && (longest > 2*refusedAfter || refusals < 2000) {
					t.Errorf("%s; want at most %v, while all endpoints are closed all the time", got, 2*refusedAfter)
				}
			}
		}
	}
}
