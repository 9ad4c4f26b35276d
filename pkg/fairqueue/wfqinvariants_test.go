package fairqueue

import "testing"

// wfqProblem checks the invariants of wfq at one level: no head's start is ahead of virtual time, or so far behind it
// that comparisons would overflow.
func wfqProblem(in *siblings, name string, fail failf) {
	if _, is := in.discipline.(wfq); !is {
		return
	}
	for f := range in.flows.all() {
		if in.virtual.before(f.start) || in.virtual-f.start > largestLag+rebaseEvery+largestStep {
			fail("%s: flow %q: start %d, virtual time %d", name, f.key, f.start, in.virtual)
		}
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
