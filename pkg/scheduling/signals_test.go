package scheduling

import "testing"

// shortLine prefers the endpoint whose engine reports the fewest waiting requests. Unknown counts as none.
type shortLine struct{ alike }

func (shortLine) standing(l Load) Standing { return MostStanding / Standing(1+l.Signals.Waiting) }

// Signals reach the board by endpoint, and stay with it through changes of the pool until it leaves.
func TestSignals(t *testing.T) {
	s := mustNew(t, func(c *Config) { c.TieBreak = TieFirst })
	s.by = shortLine{}
	b := three(t, s)
	for id := range EndpointID(3) {
		b.SetBounds(id, 20*Millionths, 20*Millionths)
	}
	q := prepare(t, b, Ask{})
	wantPlaced(t, b, q, BelowLower, 0, 0)
	set := func(id EndpointID, waiting int32, known bool) {
		t.Helper()
		if b.SetSignals(id, Signals{Known: true, Waiting: waiting}) != known {
			t.Fatalf("endpoint %d known: %t", id, !known)
		}
		checkInvariants(t, b)
	}
	set(0, 5, true)
	wantPlaced(t, b, q, BelowLower, 1)
	set(1, 3, true)
	set(2, 4, true)
	set(9, 0, false)
	wantPlaced(t, b, q, BelowLower, 1)
	b.SetBounds(1, 19*Millionths, 20*Millionths+1)
	b.SetSnapshot(changed(b.Snapshot(), func(e *Endpoint) { e.Slots++ }))
	wantPlaced(t, b, q, BelowLower, 1)
	setPool(b, 2, ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
	for id := range EndpointID(2) {
		b.SetBounds(id, 20*Millionths, 20*Millionths)
	}
	wantPlaced(t, b, q, BelowLower, 1)
	setPool(b, 3, ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), ready(2, "10.0.0.3:80"))
	wantPlaced(t, b, q, BelowLower, 2) // a new engine
	set(2, 9, true)
	set(1, 9, true)
	wantPlaced(t, b, q, BelowLower, 0)
	if d := b.Explain(q); d.Candidates[0].Total != MostStanding/6 {
		t.Errorf("%+v", d.Candidates[0])
	}
}

// Ratings made before the lock are valid on any snapshot, and with any scheduler.
func TestRatingsSurvive(t *testing.T) {
	liked := ready(2, "10.0.0.3:80")
	liked.Labels = map[string]string{"likes": "a"}
	pool := []Endpoint{ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), liked}
	b := poolOf(t, mustNew(t), pool...)
	q := liking(t, b, Ask{Model: "a"})
	pool[2].Labels = nil // the ratings are older: the label no longer matters
	b.SetSnapshot(NewSnapshot(2, pool))
	wantPlaced(t, b, q, BelowUpper, 2, 2)
	b.SetSnapshot(NewSnapshot(3, pool[:2]))
	wantPlaced(t, b, q, BelowUpper, 0)
	b.SetSnapshot(NewSnapshot(4, pool))
	wantPlaced(t, b, q, BelowUpper, 2)
	b.SetScheduler(mustNew(t, func(c *Config) { c.TieBreak = TieFirst }))
	wantPlaced(t, b, q, BelowUpper, 2)
}
