package fairqueue

import "testing"

// vtcProblem checks the invariants of vtc at one level.
func vtcProblem(in *siblings, name string, fail failf) {
	switch in.discipline.(type) {
	case vtc, fairShare:
	default:
		return
	}
	for f := range in.flows.all() {
		f.each(func(st *standing) {
			if st.start.before(st.floor) {
				fail("%s: flow %q in lane %q: counter %d below its floor %d", name, f.key, st.lane, st.start, st.floor)
			}
			if ahead := int64(st.start - in.virtual); ahead > int64(largestLead) || -ahead > int64(largestLag+rebaseEvery+largestStep) {
				fail("%s: flow %q in lane %q: counter %d, virtual time %d", name, f.key, st.lane, st.start, in.virtual)
			}
		})
		for _, fl := range f.lanes {
			if f.in(fl.lane.name) == nil {
				fail("%s: flow %q waits in lane %q without a standing there", name, f.key, fl.lane.name)
			}
			if at := fl.ownBranch().virtual; at.before(in.since) || in.virtual.before(at) {
				fail("%s: lane %q is at %d, the level at %d since %d", name, fl.lane.name, at, in.virtual, in.since)
			}
		}
	}
}

// vtcAudit remembers the virtual time of the lanes with waiters at the last step, which must never go back.
type vtcAudit struct{ lanes map[*classLane]VirtualTime }

func (a *vtcAudit) check(t testing.TB, q *FairRequestQueue) {
	t.Helper()
	now := map[*classLane]VirtualTime{}
	for _, tier := range q.tiers {
		for _, c := range tier.classes {
			for _, l := range c.lanes {
				if before, ok := a.lanes[l]; ok && l.virtual.before(before) {
					t.Fatalf("virtual time of lane %q went back from %d to %d", l.name, before, l.virtual)
				}
				now[l] = l.virtual
			}
		}
	}
	a.lanes = now
}
