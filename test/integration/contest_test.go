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

// contest is an attacker beside somebody honest who always has requests waiting, with equal weights, before one model
// server of four slots. What each of them gets is measured there, in weighted tokens.
type contest struct {
	*scene
	workers sync.WaitGroup
	over    atomic.Bool
	began   time.Time
	rounds  [][2]time.Time // in which the attacker competes
}

// plain is a completion that is always as long as it says, whatever the model server's EarlyStop; it costs 200.
const plainIn, plainOut = 10, 95

func plain() string { return lasting(plainIn, plainOut) }

// lasting is a completion that never ends before its limit.
func lasting(in, out int) string {
	return strings.TrimSuffix(completion(in, out), "}") + `,"ignore_eos":true}`
}

// compete starts a contest with 16 honest requests at any time, in which the tenant is what x-tenant says.
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

// attack sends so many requests, at most 48 at a time, and returns when all are served.
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

// round counts what is served while the attacker competes, and not what the honest one gets between rounds. In each the
// honest one has to have something waiting.
func (c *contest) round(part func()) {
	since := time.Now()
	part()
	c.rounds = append(c.rounds, [2]time.Time{since, time.Now()})
	if c.epp.value("weir_queue_length") == 0 {
		c.t.Error("the honest one has nothing waiting")
	}
}

// wantNoGain fails the test if the attacker had more than its share, which is what the honest one has had, and 5 %.
func (c *contest) wantNoGain() {
	c.t.Helper()
	c.wantAtMost(1.05)
}

// byTime is the largest ratio where the attacker is charged by time: a busy machine does not delay all answers alike.
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

// attained ends the contest and returns what was attained in all rounds, or in all of it if there were none, by the
// attacker and by the honest one, and their ratio.
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

// had returns what both have attained so far, in all rounds, or in all of the contest if there were none.
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
