package fairqueue

import (
	"math/bits"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// fairShare is MindRouter's fair share over the counters of vtc. It is for users authenticated by a gateway.
//
// # Rule
//
// MindRouter's priority of a user is (deficit + burst credits)/weight × factor + wait bonus, the highest first. Here
// the deficit is the lag of weighted service: each charge of a flow is credited to all active flows, by weight, so the
// deficits add up to zero (lag.go). Deficit over weight is then the distance of the flow's counter behind the others',
// burst credits over weight are the same for all flows (burst.go), and the wait bonus rises equally for all heads. So
// the least key goes first, and no key changes while a request waits:
//
//	key(head) = counter + Config.FairShare.WaitBonus · arrival
//
// A flow whose recent use exceeds both Threshold and its entitlement is handled separately: its factor changes with
// every charge (penalty.go). There is at most one such flow, since the threshold is at least one half.
//
// The rest is vtc's: the counters of each lane, the charge at dispatch, corrections and refunds, and the lift of a
// returning flow, so that idle time earns no credit.
//
// # Newcomers
//
// With vtc, an unknown flow pays for its first request in advance. Here it does not, and is served like a flow that was
// idle, unless other newcomers came before it: newcomers owe their unpaid charges together, as if they were one flow
// (branch.strangers), and none pays more than its own request. So names used once and replaced get as much as the same
// number of permanent flows, and a new user among few new users waits no longer than a known user.
//
// # Bound
//
// Let b be the wait bonus, T the longest wait of a head, and S, l and E as in the bound of vtc. A head goes when its
// key is the least, so its counter is at most b·T after the least other counter. A newcomer is lifted to at most the
// least key instead of the least counter, at most b·T more. So without a flow above the threshold, the counters'
// movements differ by at most l_f + l_g + 2E + 2b·T. Now let g be above the threshold. It goes, at the latest, when
// virtual time has passed its counter plus its head's charge. The dispatch of f that moves virtual time so far had a
// counter at most l_f + E ahead of virtual time. So S_f − S_g <= 2l_f + l_g + 2E + b·T, and over an interval in which
// each was above the threshold the movements differ by at most 3l_f + 3l_g + 4E + 2b·T. In the long run each flow still
// has its share. With the defaults, b·T is 3 tokens for waits of up to 30 s.
//
// # Memory
//
// Each known flow's recent use takes recentPeriods numbers, kept as long as its counter.
type fairShare struct{ vtc }

// FairShareConfig is the configuration of discipline FairShare. All of it can change at run time; a new Window forgets
// the recent use.
type FairShareConfig struct {
	// Window is the time in which use is recent, MinWindow to MaxWindow.
	Window time.Duration
	// Threshold is the share of the recent use, in millionths, above which a flow gets less: half a million to a million.
	Threshold int64
	// WaitBonus is the addition to a request's priority for each second of waiting, in millionths of cost at weight 1;
	// 0 to MaxWaitBonus.
	WaitBonus int64
	// BurstRate is the credit, in cost at weight 1, that each second of an idle queue adds, BurstCap the largest
	// credit; both 0 to MaxCost. BurstDecay is the part of the credit, in millionths, that stays when requests begin to
	// wait; 0 to a million.
	BurstRate, BurstCap Cost
	BurstDecay          int64
}

// The limits of FairShareConfig. With the largest bonus, waits of 17 years fit into a key.
const (
	MinWindow    = time.Second
	MaxWindow    = 24 * time.Hour
	MaxWaitBonus = 1000 * millionth
	millionth    = 1_000_000
)

// DefaultFairShare returns MindRouter's defaults.
func DefaultFairShare() FairShareConfig {
	return FairShareConfig{
		Window: 300 * time.Second, Threshold: millionth / 2, WaitBonus: millionth / 10,
		BurstRate: 100, BurstCap: 1000, BurstDecay: millionth / 2,
	}
}

// fairShares is the state of discipline FairShare common to all tiers and classes.
type fairShares struct {
	queue *FairRequestQueue
	burst burst
	from  period // the number that the period at the epoch would have

	present presentPeriod
}

// fairLevel is FairShare's state of a class.
type fairLevel struct {
	*fairShares
	recent recentUse // of all its flows, including forgotten ones
	lags
	penalty
	at int // the standing of the flow above the threshold whose key was computed last, if it has many
}

func newFairLevel(s *fairShares) *fairLevel {
	f := &fairLevel{fairShares: s}
	f.recent.period = f.period()
	return f
}

// config returns the configuration.
func (s *fairShares) config() *FairShareConfig { return &s.queue.config.FairShare }

// bonus returns the wait bonus by arrival time, as the delay of the key relative to a request that arrived at the
// epoch.
func (s *fairShares) bonus(arrived time.Duration) VirtualTime {
	hi, lo := bits.Mul64(uint64(max(0, arrived)), uint64(s.config().WaitBonus)<<virtualBits)
	quo, _ := bits.Div64(hi, lo, uint64(time.Second)*millionth) // hi < 2^61 · 2^50 / 2^64
	return VirtualTime(quo).earlier(largestStep / 2)
}

func (d fairShare) begin(l *level, s *share) {
	d.vtc.begin(l, s)
	l.enter(s)
}

func (d fairShare) join(l *level, s *share, in *branch, alone bool, r *Request) (moved bool) {
	if alone {
		in.virtual, in.matched, in.strangers, in.raise = l.virtual, false, l.virtual, 0
	}
	if l.penalizes(s) {
		in.raise = 0 // until the next turn
	}
	st, own := s.at(r.Lane), increment(r.Cost, s.weight)
	to := in.virtual
	if !st.known {
		to = in.stranger(own)
	}
	if first := in.flows.Min(); first != nil && !(in.matched && !in.front.before(first.counter())) {
		least := first.tag - l.shares.bonus(r.arrived)
		if l.penalizes(&first.flow.share) {
			least-- // it goes before that flow
		}
		to = to.later(least.earlier(in.virtual + own))
	}
	return st.lift(to)
}

// counter returns the counter of a flow where it waits.
func (fl *flowLane) counter() VirtualTime { return fl.flow.waitsIn(fl.lane.name).start }

// stranger returns the start of an unknown flow in the lane.
func (b *branch) stranger(own VirtualTime) VirtualTime {
	b.strangers = b.strangers.later(b.virtual)
	at := b.strangers.earlier(b.virtual + own)
	b.strangers += own
	return at
}

func (d fairShare) tag(l *level, s *share, head *Request) VirtualTime {
	tag := d.vtc.tag(l, s, head) + l.shares.bonus(head.arrived)
	if l.penalizes(s) {
		if in := s.flow.branchIn(head.Lane); in != nil {
			tag += in.raise
		}
	}
	return tag
}

func (d fairShare) charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) (moved bool) {
	if l.another {
		l.least = r.branchOf(s.flow).flows.Min().counter()
	}
	moved = d.vtc.charge(l, s, r, tag, p)
	l.used(s, r.Cost, p)
	return moved
}

func (d fairShare) bypassed(l *level, s *share, r *Request, p *receipt) (moved bool) {
	l.enter(s)
	moved = d.vtc.bypassed(l, s, r, p)
	l.used(s, r.Cost, p)
	return moved
}

func (d fairShare) adjust(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	return p.weight != 0 && increment(to, p.weight) > p.charged && d.trueUp(l, s, r, to, p)
}

func (d fairShare) trueUp(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	if p.weight == 0 {
		return false
	}
	l.corrected(s, to, p)
	return d.vtc.trueUp(l, s, r, to, p)
}

func (d fairShare) refund(l *level, s *share, r *Request, p *receipt) (moved bool) {
	l.corrected(s, 0, p)
	return d.vtc.refund(l, s, r, p)
}

func (d fairShare) end(l *level, s *share) {
	if l.fair != nil {
		l.fair.leave(s)
		l.fair.penalty.pardon(s)
	}
}

func (d fairShare) freshen(l *level, s *share) (moved bool) {
	moved = d.vtc.freshen(l, s)
	for _, fl := range s.flow.lanes {
		in := fl.ownBranch()
		in.strangers = in.strangers.later(in.virtual)
	}
	if u := s.elsewhere; l.fair != nil && u != nil && u.mine != nil && u.mine.weight != 0 {
		l.fair.near(u.mine, l.fair.mean())
	}
	return moved
}

// enter notes that s is active.
func (l *level) enter(s *share) {
	if l.fair != nil {
		l.fair.enter(s)
	}
}

// used notes the charge of s for a request.
func (l *level) used(s *share, cost Cost, p *receipt) {
	if f := l.fair; f != nil {
		now, u := f.period(), s.used(f)
		f.recent.add(now, now, u.add(now, now, int64(cost)))
		l.stale = f.spend(u, s.weight, increment(cost, s.weight)) || l.stale
		p.noteUse(now, cost)
	}
}

// corrected notes a corrected charge of s. It changes the use at the time of the dispatch, if that is recent; otherwise
// a surplus counts as used now.
func (l *level) corrected(s *share, to Cost, p *receipt) {
	f := l.fair
	if f == nil || p.weight == 0 {
		return
	}
	now := f.period()
	then, was := p.use()
	by, at := int64(to-was), then
	if now-then >= recentPeriods {
		by, at = max(by, 0), now
	}
	u := s.used(f)
	f.recent.add(now, at, u.add(now, at, by))
	l.stale = f.spend(u, s.weight, increment(to, p.weight)-increment(was, p.weight)) || l.stale
	p.noteUse(then, to)
}

// check checks the configuration.
func (c *FairShareConfig) check(ps *invalid.Problems, at invalid.Path) {
	invalid.Within(ps, at.At("Window"), c.Window, MinWindow, MaxWindow)
	millionths := func(field string, n, least, most int64) {
		if n < least || n > most {
			ps.Add(at.At(field), Weight(n).decimal(), "must be from %s to %s", Weight(least).decimal(), Weight(most).decimal())
		}
	}
	millionths("Threshold", c.Threshold, millionth/2, millionth)
	millionths("WaitBonus", c.WaitBonus, 0, MaxWaitBonus)
	millionths("BurstDecay", c.BurstDecay, 0, millionth)
	invalid.Within(ps, at.At("BurstRate"), c.BurstRate, 0, MaxCost)
	invalid.Within(ps, at.At("BurstCap"), c.BurstCap, 0, MaxCost)
}
