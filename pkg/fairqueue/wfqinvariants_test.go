package fairqueue

import "testing"

// wfqProblem checks the invariants of wfq at one level: no start is below its floor, nor so far ahead of virtual time or
// behind it that comparisons would overflow.
func wfqProblem(in *siblings, name string, fail failf) {
	if _, is := in.discipline.(wfq); !is {
		return
	}
	check := func(f *flow) {
		f.each(func(st *standing) {
			if ahead := int64(st.start - in.virtual); ahead > int64(largestLead) || -ahead > int64(largestLag+rebaseEvery+largestStep) {
				fail("%s: flow %q in lane %q: start %d, virtual time %d", name, f.key, st.lane, st.start, in.virtual)
			}
			if st.start.before(st.floor) || largestLag.before(st.refunds) {
				fail("%s: flow %q in lane %q: start %d, floor %d, refunds of %d", name, f.key, st.lane, st.start, st.floor, st.refunds)
			}
		})
		for _, fl := range f.lanes {
			if f.in(fl.lane.name) == nil || in.virtual.before(fl.ownBranch().virtual) {
				fail("%s: flow %q waits in lane %q without a standing there, or the lane is past its level", name, f.key, fl.lane.name)
			}
		}
	}
	for f := range in.flows.all() {
		check(f)
	}
	for f := range in.flows.idle() {
		check(f)
	}
}

// wfqAudit remembers the virtual time of every class at the last step, which must never go back.
type wfqAudit struct{ virtual map[*class]VirtualTime }

func (a *wfqAudit) check(t testing.TB, q *FairRequestQueue) {
	t.Helper()
	if a.virtual == nil {
		a.virtual = map[*class]VirtualTime{}
	}
	for _, tier := range q.tiers {
		for _, c := range tier.classes {
			if before, ok := a.virtual[c]; ok && c.virtual.before(before) {
				t.Fatalf("virtual time of %s went back from %d to %d", tier.config.Name, before, c.virtual)
			}
			a.virtual[c] = c.virtual
		}
	}
}
