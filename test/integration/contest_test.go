package integration

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// contest is an attacker beside an honest client with a constant backlog, with equal weights, before one model server
// of four slots. The model server measures the service of each, in weighted tokens.
type contest struct {
	*scene
	workers sync.WaitGroup
	over    atomic.Bool
	began   time.Time
	rounds  [][2]time.Time // in which the attacker competes
}

// plain is a completion of a fixed length, whatever the model server's EarlyStop. It costs 200.
const plainIn, plainOut = 10, 95

func plain() string { return lasting(plainIn, plainOut) }

// lasting is a completion that never ends before its limit.
func lasting(in, out int) string {
	return strings.TrimSuffix(completion(in, out), "}") + `,"ignore_eos":true}`
}

// compete starts a contest with 16 concurrent honest requests. x-tenant names the tenant.
func compete(t *testing.T, with setup, server modelsim.Config, honest ask) *contest {
	t.Helper()
	server.Records, server.RecordBodyBytes, server.TagHeader = 1<<16, 0, "x-tenant"
	with.models = []modelsim.Config{server}
	c := &contest{scene: start(t, with)}
	for range 16 {
		c.workers.Go(func() {
			for !c.over.Load() {
				wantServed(t, "honest", c.send(honest))
			}
		})
	}
	t.Cleanup(func() { c.over.Store(true); c.workers.Wait() })
	expect.True(t, "the honest one is served until costs are learned", func() bool { return c.models[0].Stats().Completed >= 32 })
	c.began = time.Now()
	return c
}

// by returns a request of a tenant to /v1/completions.
func by(tenant, body string) ask {
	a := from(tenant)
	a.path, a.body = "/v1/completions", body
	return a
}

// attack sends so many requests, at most 48 at a time, and returns after the last answer.
func (c *contest) attack(n int, request func(i int) ask) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, 48) {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				wantServed(c.t, "attacker", c.send(request(i)))
			}
		})
	}
	all.Wait()
}

// round counts the service while the attacker competes, without the honest client's service between rounds. The honest
// client has a backlog in each round.
func (c *contest) round(part func()) {
	since := time.Now()
	part()
	c.rounds = append(c.rounds, [2]time.Time{since, time.Now()})
	if c.epp.value("weir_queue_length") == 0 {
		c.t.Error("the honest one has nothing waiting")
	}
}

// wantNoGain fails the test if the attacker got more than the honest client, its share, plus 5 %.
func (c *contest) wantNoGain() {
	c.t.Helper()
	c.wantAtMost(1.05)
}

// byTime is the largest ratio for charges by time: a busy machine does not delay all answers alike.
const byTime = 1.2

// wantAtMost is wantNoGain with another ratio.
func (c *contest) wantAtMost(most float64) {
	c.t.Helper()
	_, honest, ratio := c.attained()
	if ratio > most {
		c.t.Errorf("the ratio is %.3f, want at most %v", ratio, most)
	}
	if least := 20 * 2 * 4 * 200; honest < least {
		c.t.Errorf("measured are %d of the honest one, want %d: the bound of vtc would show", honest, least)
	}
}

// attained ends the contest. It returns the service of the attacker and of the honest client in all rounds, or in the
// whole contest if there were none, and their ratio.
func (c *contest) attained() (attacker, honest int, ratio float64) {
	c.t.Helper()
	c.over.Store(true)
	c.workers.Wait()
	c.epp.settled()
	attacker, honest = c.had()
	ratio = float64(attacker) / float64(honest)
	c.t.Logf("the attacker has %d, the honest one %d: ratio %.3f", attacker, honest, ratio)
	return attacker, honest, ratio
}

// had returns the service of both so far, in all rounds, or in the whole contest if there were none.
func (c *contest) had() (attacker, honest int) {
	rounds := c.rounds
	if rounds == nil {
		rounds = [][2]time.Time{{c.began, time.Now()}}
	}
	for _, r := range c.models[0].Records() {
		for _, round := range rounds {
			if r.Arrived.Before(round[0]) || r.Arrived.After(round[1]) {
				continue
			}
			if cost := r.Prompt + 2*r.Output; r.Tag == "honest" {
				honest += cost
			} else {
				attacker += cost
			}
		}
	}
	return attacker, honest
}
