package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/quota"
)

// In scenes with quotas a request such as "a=2" has an estimate of 2 tokens of its tenant's quota. It uses little,
// much, or its estimate.
const (
	little int64 = 1
	much   int64 = 4
)

// quotaUse is a request's use of its tenant's quota.
type quotaUse struct {
	at     time.Time // its arrival
	tokens int64     // of its estimate, or fewer; 0 once it has ended without service
	more   int64     // its use beyond that, known at its end
	ended  time.Time
}

// in returns the use that counts in the window up to now.
func (c *quotaUse) in(now time.Time, window time.Duration) (n int64) {
	if c.at.Add(window).After(now) {
		n += c.tokens
	}
	if c.ended.Add(window).After(now) {
		n += c.more
	}
	return n
}

// used returns a tenant's use of its quota at a time, without further requests.
func (w *world) used(tenant string, at time.Time, l quota.Limit) (n int64) {
	for _, s := range w.subjects {
		if s.kind.key() == tenant {
			n += s.counts.in(at, l.Window)
		}
	}
	return n
}

// quotaOf returns the quota of a request, or none.
func (w *world) quotaOf(k arrivalKind) quota.Limit {
	if k.uses() == 0 {
		return quota.Limit{}
	}
	return w.config.Quotas.Limit(k.key(), k.role())
}

// quotaGlance is the expected result of an arrival.
type quotaGlance struct {
	limit   quota.Limit
	refused bool
	until   time.Duration // time until there would be room
	left    int64         // of the quota
	stock   int
	queued  int
}

// lookAtQuota expects an arrival to be refused if its tenant's window has no room. A request above the whole quota
// needs an empty window.
func (w *world) lookAtQuota(k arrivalKind) (g quotaGlance) {
	g.stock, g.queued = w.ledger.Stock(), w.queue.Len()
	if g.limit = w.quotaOf(k); g.limit.None() {
		return g
	}
	most := g.limit.Tokens - min(k.uses(), g.limit.Tokens)
	used := w.used(k.key(), w.clock, g.limit)
	if g.refused = used > most; !g.refused {
		g.left = max(0, g.limit.Tokens-used-k.uses())
		return g
	}
	g.left = max(0, g.limit.Tokens-used)
	var leave []time.Time
	for _, s := range w.subjects {
		leave = append(leave, s.counts.at.Add(g.limit.Window), s.counts.ended.Add(g.limit.Window))
	}
	slices.SortFunc(leave, time.Time.Compare)
	for _, at := range leave {
		if at.After(w.clock) && w.used(k.key(), at, g.limit) <= most {
			g.until = at.Sub(w.clock)
			break
		}
	}
	return g
}

// quotaAgrees: exactly the requests without room are refused, with the time at which there will be room, and no other
// request is affected.
func (w *world) quotaAgrees(g glance) error {
	for _, s := range w.subjects {
		if s.outcome != OutcomeQuotaExceeded || s.last == StageEnded {
			continue
		}
		if g.in.op != arrives || s != w.subjects[len(w.subjects)-1] || s.w.stage != StageEnded {
			return fmt.Errorf("%v ends as above its quota, and has not just come", s)
		}
	}
	if g.in.op != arrives {
		return nil
	}
	a, q := w.subjects[len(w.subjects)-1], g.quota
	refused := a.told && a.outcome == OutcomeQuotaExceeded
	standing, counts := a.w.Quota()
	switch {
	case refused != q.refused:
		return fmt.Errorf("%v is refused: %t, want %t", a, refused, q.refused)
	case counts != !q.limit.None():
		return fmt.Errorf("%v has a quota: %t", a, counts)
	case !counts:
		return nil
	case standing.Limit != q.limit.Tokens || standing.Remaining != q.left && !(a.told && !refused):
		return fmt.Errorf("%v is told %+v, want %d left of %d", a, standing, q.left, q.limit.Tokens)
	case !refused:
		return nil
	case a.w.RetryAfter() != q.until:
		return fmt.Errorf("%v is told to come back in %v, want %v", a, a.w.RetryAfter(), q.until)
	case w.ledger.Stock() != q.stock || w.queue.Len() != q.queued || len(w.heard) > 0:
		return fmt.Errorf("%v is above its quota, and others notice", a)
	}
	return nil
}

// settleQuotas returns the reserved quota of requests that ended without service.
func (w *world) settleQuotas() {
	for _, s := range w.subjects {
		if s.told && s.outcome != OutcomeDispatched || s.preempted {
			s.counts.tokens, s.counts.more = 0, 0
		}
	}
}

// uses ends a request with this use.
func (w *world) uses(s *subject, tokens int64) {
	w.event(func() { w.Used(w.clock, s.w.Granted(), tokens) })
	if c := &s.counts; tokens > c.tokens {
		c.more, c.ended = tokens-c.tokens, w.clock
	} else {
		c.tokens = tokens
	}
	w.complete(s)
	w.event(func() { w.Used(w.clock, s.w.Granted(), 9) }) // only the first counts
}

// quotaInputs returns the possible ends of requests that quotas count.
func (w *world) quotaInputs() (in []input) {
	for i, s := range w.subjects {
		if (s.w.stage == StageSent || s.w.stage == StageStreaming) && s.w.Metered() {
			in = append(in, input{completesLittle, int8(i)}, input{completesMuch, int8(i)})
		}
	}
	return in
}

// appendQuotas appends the past and pending use.
func (w *world) appendQuotas(b []byte) []byte {
	if len(w.config.Quotas.Tenants) == 0 {
		return b
	}
	for _, s := range w.subjects {
		l := w.quotaOf(s.kind)
		if c := &s.counts; c.in(w.clock, l.Window) > 0 || s.waits() || s.holds() {
			b = fmt.Append(b, s.kind.key(), c.tokens, c.more, min(w.clock.Sub(c.at), l.Window), min(w.clock.Sub(c.ended), l.Window), s.w.stage)
		}
	}
	return b
}
