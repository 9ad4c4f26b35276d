package fairqueue

import "time"

// UserShare is the state of a flow with FairShare.
type UserShare struct {
	Tier   int
	Class  string
	Flow   string
	Weight Weight
	// Deficit is the service owed to it, in units of cost: its lag of weighted service. The deficits of a class's
	// active flows add up to zero, within one unit for each. An inactive flow has 0.
	Deficit int64
	// BurstCredits are its credits from idle time, in units of cost.
	BurstCredits int64
	// Recent is its recent use, in units of cost.
	Recent int64
	// Factor lowers its priority; it is in millionths, a million if it is not above the threshold.
	Factor int64
	// Queued and InFlight are numbers of requests.
	Queued, InFlight int
}

// SharesView is the state of all flows with FairShare.
type SharesView struct {
	// Known is the number of known flows; Users has some of them.
	Known int
	Users []UserShare
	// Recent is the recent use of all flows, including forgotten ones, in units of cost.
	Recent int64
	Window time.Duration
}

// Shares returns the states of up to limit flows with FairShare, by tier and class: active flows first, the longest
// active before others, then the last active ones. It visits as many flows. ok is false with another discipline.
func (q *FairRequestQueue) Shares(now time.Time, limit int) (v SharesView, ok bool) {
	if q.shares == nil {
		return v, false
	}
	q.now = now
	v.Window = q.config.FairShare.Window
	for _, t := range q.tiers {
		for _, c := range t.classes {
			v.Known += len(c.flows.known)
			v.Recent += c.fair.recent.at(c.fair.period())
			for u := c.fair.first; u != nil && len(v.Users) < limit; u = u.newer {
				v.Users = append(v.Users, c.fair.view(u.flow))
			}
		}
	}
	for _, t := range q.tiers {
		for _, c := range t.classes {
			for f := c.flows.newest; f != nil && len(v.Users) < limit; f = f.position.older {
				v.Users = append(v.Users, c.fair.view(f))
			}
		}
	}
	return v, true
}

// view returns the known state of a flow.
func (f *fairLevel) view(of *flow) UserShare {
	c := of.class
	credits := f.burst.at(f.queue.Since(f.queue.now), f.config())
	v := UserShare{
		Tier: c.tier.id, Class: c.config.Name, Flow: of.key, Weight: of.weight,
		Deficit:      f.deficit(&of.share),
		BurstCredits: int64(mulDiv(uint64(credits), uint64(of.weight), millionth*millionth)),
		Recent:       of.usedRecently(f.period()), Factor: millionth,
		Queued: of.queued, InFlight: int(of.inflight),
	}
	if factor, above := f.heavy(&of.share); above && v.Queued+v.InFlight > 0 {
		v.Factor = int64(mulDiv(factor.kept, millionth, factor.in))
	}
	return v
}
