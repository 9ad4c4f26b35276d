package dispatch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// With classes that have busy rules and limits by worker, these hold beside the other properties:
//
//   - No request goes, with or without waiting, while its endpoints are too busy for its class: while enough of them
//     have more unread prompt tokens than the threshold, or than the fraction of their batches. A prompt counts from
//     the placement to the first token, or to the end of the answer if its first token is not seen.
//   - No other class, and no request in another lane, waits for a blocked one.
//   - A request is rejected by a limit of its class exactly if it would wait, and its class and tier have reached the
//     limit of waiting requests, raw tokens or cached tokens for its endpoints, ready or not. The first of these limits
//     is named.

// TestRandomBusyClasses plays scenes of such classes.
func TestRandomBusyClasses(t *testing.T) {
	runs := *randomRuns / 4
	total := playScenes(t, runs, busyScene)
	if total.blocked < 20*runs || total.limited < 5*runs || total.unblocked < 2*runs {
		t.Errorf("%d scenes: only %d were blocked, %d of them went later, and %d were limited", runs, total.blocked, total.unblocked, total.limited)
	}
}

// busyScene is the scene of a seed with such classes.
func busyScene(seed uint64) *scene {
	s, r := newScene(seed), rand.New(rand.NewPCG(seed, 7))
	s.prompts, s.busies = true, true
	rule := func() (b scheduling.BusyRule) {
		if chance(r, 70) {
			b.PrefillTokens = new(some[int64](r, 0, 4000, 12_000, 30_000))
		}
		if chance(r, 30) {
			b.PrefillFraction = new(some[int64](r, 500_000, 2_000_000))
		}
		if _, _, given := b.Threshold(); given && chance(r, 50) {
			b.WorkerRatio = some[int64](r, 1, 500_000, 950_000)
		}
		return b
	}
	limit := func(most ...int64) *int64 {
		if chance(r, 70) {
			return nil
		}
		return new(some(r, most...))
	}
	busy := func(c *dispatch.Config) {
		if c.Queue.Classes = slices.Clone(c.Queue.Classes); len(c.Queue.Classes) == 0 {
			c.Queue.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 5}, {Name: "y", Quantum: 2}}
		}
		c.Classes, c.Queue.Order = nil, fairqueue.FCFS
		for i := range c.Queue.Classes {
			c.Classes = append(c.Classes, dispatch.ClassConfig{Busy: rule()})
			c.Queue.Classes[i].Limits = fairqueue.ClassLimits{
				Requests: limit(0, 1, 3, 10), RawTokens: limit(0, 5000, 20_000), CachedTokens: limit(0, 1000, 9000),
			}
		}
		if c.Tiers = slices.Clone(c.Tiers); chance(r, 10) {
			c.Classes = nil
			return
		}
		for i := range c.Tiers {
			c.Tiers[i].CanPreempt = false
		}
	}
	batches := func(pool []scheduling.Endpoint) {
		for i := range pool {
			pool[i].MaxBatchedTokens = some[int64](r, 0, 4000, 16_000)
		}
	}
	busy(&s.config)
	batches(s.pool)
	for i := range s.changes {
		if c := s.changes[i].config; c != nil {
			busy(c)
		}
		batches(s.changes[i].pool)
	}
	return s
}

// hasBusyRules reports whether any class has a threshold, so that the prompts of all requests count.
func (o *world) hasBusyRules() bool {
	return slices.ContainsFunc(o.config.Classes, func(c dispatch.ClassConfig) bool {
		_, _, given := c.Busy.Threshold()
		return given
	})
}

// readsAt notes the count of a request placed at an endpoint.
func (o *world) readsAt(r *request, e scheduling.EndpointID) {
	r.reads = 0
	if known := r.query.Ratings(); known != nil && known.Prompt > 0 && (known.Watched || o.hasBusyRules()) {
		r.reads = max(1, known.Prompt-known.Cached(e))
	}
}

// toRead returns the number of unread prompt tokens at an endpoint.
func (o *world) toRead(e scheduling.EndpointID) (n int64) {
	for _, r := range o.running {
		if r.at == e {
			n += r.reads
		}
	}
	return n
}

// ruleOf is the busy rule of a request's class; nil if there is none.
func (o *world) ruleOf(r *request) *scheduling.BusyRule {
	name := r.class
	if r.phase == coming {
		name = o.class(r)
	}
	i := slices.IndexFunc(o.config.Queue.Classes, func(c fairqueue.ClassConfig) bool { return c.Name == name })
	if i < 0 || len(o.config.Classes) == 0 {
		return nil
	}
	return &o.config.Classes[i].Busy
}

// blocked reports whether the endpoints that a request may use are too busy for its class.
func (o *world) blocked(r *request) bool {
	rule := o.ruleOf(r)
	if rule == nil {
		return false
	}
	busy, of := 0, 0
	for i := range o.pool {
		e := &o.pool[i]
		if !o.serves(r, e) {
			continue
		}
		of++
		n := float64(o.toRead(e.ID))
		if rule.PrefillTokens != nil && n > float64(*rule.PrefillTokens) ||
			rule.PrefillFraction != nil && e.MaxBatchedTokens > 0 && n*1e6 > float64(*rule.PrefillFraction)*float64(e.MaxBatchedTokens) {
			busy++
		}
	}
	ratio := rule.WorkerRatio
	if ratio == 0 {
		ratio = 1_000_000
	}
	return busy > 0 && int64(busy)*1_000_000 >= ratio*int64(of)
}

// prompt has a request's data on its prompt.
func (r *request) prompt() fairqueue.Prompt {
	known := r.query.Ratings()
	if known == nil {
		return fairqueue.Prompt{}
	}
	best := known.Floor
	for _, c := range known.Above {
		best = max(best, c.Tokens)
	}
	return fairqueue.PromptOf(known.Prompt, best)
}

// limitReached is the first limit of its class that an arrival meets; NumLimits: none.
func (x *run) limitReached(r *request) fairqueue.LimitKind {
	i := slices.IndexFunc(x.config.Queue.Classes, func(c fairqueue.ClassConfig) bool { return c.Name == x.class(r) })
	if i < 0 {
		return fairqueue.NumLimits
	}
	workers := int64(0)
	for j := range x.pool {
		if x.pool[j].Serves(r.load.ask.Model) {
			workers++
		}
	}
	var waits [fairqueue.NumLimits]int64
	for _, o := range x.waiting {
		if o != r && o.w.Tier() == r.w.Tier() && o.class == x.class(r) {
			p := o.prompt()
			waits[fairqueue.LimitRequests]++
			waits[fairqueue.LimitRawTokens] += int64(p.Raw)
			waits[fairqueue.LimitCachedTokens] += int64(p.Cached)
		}
	}
	l := &x.config.Queue.Classes[i].Limits
	for k, most := range [fairqueue.NumLimits]*int64{l.Requests, l.RawTokens, l.CachedTokens} {
		if most != nil && waits[k] >= *most*workers {
			return fairqueue.LimitKind(k)
		}
	}
	return fairqueue.NumLimits
}

// limitedRightly checks whether an arrival that did not go at once was rejected by a limit of its class.
func (x *run) limitedRightly(r *request) {
	if !x.scene.busies || r.passesOn || !x.config.Enabled {
		return
	}
	want, got := x.limitReached(r), fairqueue.LimitKind(fairqueue.NumLimits)
	if err, limited := errors.AsType[*fairqueue.LimitError](r.w.Failure()); limited {
		got = err.Limit
		x.counts.limited++
	}
	waits := r.w.Stage() == dispatch.StageWaiting
	if got != fairqueue.NumLimits && got != want || waits && want != fairqueue.NumLimits {
		x.failf("limit: %v in stage %d was rejected by limit %d, want %d", r, r.w.Stage(), got, want)
	}
}

func describeBusy(b *scheduling.BusyRule) string {
	field, value, _ := b.Threshold()
	return fmt.Sprintf("%s %v, ratio %d", field, value, b.WorkerRatio)
}
