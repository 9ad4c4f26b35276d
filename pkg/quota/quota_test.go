package quota

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the time so long after the start.
func at(d time.Duration) time.Time { return start.Add(d) }

// perMinute is the quota of most tests.
func perMinute(tokens int64) Limit { return Limit{Tokens: tokens, Window: time.Minute} }

// asks reserves tokens, and fails the test if they are not admitted or refused as wanted.
func asks(t *testing.T, a *Accounts, after time.Duration, key string, l Limit, tokens int64, wait time.Duration) *Hold {
	t.Helper()
	var h Hold
	_, got := a.Reserve(at(after), key, l, tokens, &h)
	if got != wait {
		t.Fatalf("after %v, %d tokens of %q: come back in %v, want %v", after, tokens, key, got, wait)
	}
	if h.Held() != (wait == 0) {
		t.Fatalf("after %v: the hold is %+v", after, h)
	}
	a.checkInvariants(t)
	return &h
}

// A tenant uses its quota within a minute, is told when the window frees enough, and is admitted exactly then.
func TestTheWindowSlides(t *testing.T) {
	a, l := New(10), perMinute(100)
	asks(t, a, 0, "ada", l, 60, 0)
	asks(t, a, 20*time.Second, "ada", l, 40, 0)
	asks(t, a, 30*time.Second, "ada", l, 1, 30*time.Second)  // the first 60 leave a minute after they came
	asks(t, a, 30*time.Second, "ada", l, 61, 50*time.Second) // these need the next ones too
	asks(t, a, 59999*time.Millisecond, "ada", l, 60, time.Millisecond)
	asks(t, a, time.Minute, "ada", l, 60, 0)
	asks(t, a, time.Minute, "bob", l, 100, 0) // has a window of its own
}

// A request that uses less than its estimate gives the rest back, and one that uses more owes it from now on.
func TestTrueUp(t *testing.T) {
	a, l := New(10), perMinute(100)
	h := asks(t, a, 0, "ada", l, 80, 0)
	if s := a.Settle(at(10*time.Second), h, 30, l); s != (Standing{Limit: 100, Remaining: 70, Reset: 50 * time.Second}) {
		t.Errorf("after 30 of 80 were used: %+v", s)
	}
	h = asks(t, a, 10*time.Second, "ada", l, 70, 0)
	if s := a.Settle(at(40*time.Second), h, 90, l); s != (Standing{Limit: 100, Remaining: 0, Reset: time.Minute}) {
		t.Errorf("after 90 of 70 were used: %+v", s)
	}
	// 120 are used: 30 leave at 60 s, 70 at 70 s, and the 20 that were not foreseen at 100 s.
	asks(t, a, 40*time.Second, "ada", l, 10, 20*time.Second)
	asks(t, a, 40*time.Second, "ada", l, 11, 30*time.Second)
	asks(t, a, 40*time.Second, "ada", l, 81, time.Minute)
}

// A request that is not served costs nothing, and no hold is settled twice.
func TestRefund(t *testing.T) {
	a, l := New(10), perMinute(100)
	h := asks(t, a, 0, "ada", l, 100, 0)
	asks(t, a, time.Second, "ada", l, 1, 59*time.Second)
	if s := a.Settle(at(2*time.Second), h, 0, l); s.Remaining != 100 || s.Reset != 0 {
		t.Errorf("after the refund: %+v", s)
	}
	a.Settle(at(2*time.Second), h, 0, l)
	asks(t, a, 2*time.Second, "ada", l, 100, 0)
	asks(t, a, 2*time.Second, "ada", l, 1, time.Minute)
}

// A refund that comes when its tokens have left the window anyway gives nothing: the window has others now.
func TestALateRefundGivesNothing(t *testing.T) {
	a, l := New(10), perMinute(100)
	long := asks(t, a, 0, "ada", l, 100, 0)
	asks(t, a, 70*time.Second, "ada", l, 100, 0)
	if s := a.Settle(at(71*time.Second), long, 0, l); s.Remaining != 0 {
		t.Errorf("the refund of an hour ago leaves %+v", s)
	}
	a.checkInvariants(t)
}

// A request that is estimated above the whole quota is admitted when nothing else is in the window, and owes it all.
func TestARequestAboveTheQuota(t *testing.T) {
	a, l := New(10), perMinute(100)
	asks(t, a, 0, "ada", l, 1, 0)
	asks(t, a, time.Second, "ada", l, 500, 59*time.Second)
	asks(t, a, time.Minute, "ada", l, 500, 0)
	asks(t, a, 90*time.Second, "ada", l, 1, 30*time.Second)
	asks(t, a, 2*time.Minute, "ada", l, 1, 0)
}

// The standing counts what is left, and when all is free again.
func TestStanding(t *testing.T) {
	a, l := New(10), perMinute(100)
	var h Hold
	if s, _ := a.Reserve(at(0), "ada", l, 30, &h); s != (Standing{Limit: 100, Remaining: 70, Reset: time.Minute}) {
		t.Errorf("after 30 of 100: %+v", s)
	}
	var no Hold
	if s, _ := a.Reserve(at(15*time.Second), "ada", l, 80, &no); s != (Standing{Limit: 100, Remaining: 70, Reset: 45 * time.Second}) {
		t.Errorf("when 80 more are refused: %+v", s)
	}
}

// A reload that changes the quota keeps what was used.
func TestAnotherQuota(t *testing.T) {
	a := New(10)
	asks(t, a, 0, "ada", perMinute(100), 90, 0)
	asks(t, a, time.Second, "ada", perMinute(50), 1, 59*time.Second)
	asks(t, a, time.Second, "ada", perMinute(200), 110, 0)
	hour := Limit{Tokens: 250, Window: time.Hour}
	asks(t, a, time.Second, "ada", hour, 51, time.Hour-time.Second)
	asks(t, a, 2*time.Minute, "ada", hour, 50, 0) // what an hour keeps was still known
	asks(t, a, 2*time.Minute, "ada", hour, 50, time.Hour-2*time.Minute)
}

// There are never more accounts than permitted. Those without tokens go first, then the one that asked longest ago.
func TestAccountsAreBounded(t *testing.T) {
	a, l := New(2), perMinute(100)
	held := asks(t, a, 0, "ada", l, 100, 0)
	asks(t, a, 0, "bob", l, 100, 0)
	asks(t, a, time.Second, "ada", l, 1, 59*time.Second)
	asks(t, a, 2*time.Second, "cyd", l, 100, 0) // bob has asked longest ago
	asks(t, a, 3*time.Second, "ada", l, 1, 57*time.Second)
	asks(t, a, 3*time.Second, "bob", l, 100, 0)
	if a.Len() != 2 {
		t.Errorf("%d accounts", a.Len())
	}
	// A hold of a forgotten account gives nothing back, and what it has used above its estimate counts.
	asks(t, a, 4*time.Second, "cyd", l, 100, 0)
	if s := a.Settle(at(4*time.Second), held, 130, l); s.Remaining != 70 {
		t.Errorf("30 tokens above the estimate of a forgotten account: %+v", s)
	}
	a.checkInvariants(t)
	asks(t, a, 5*time.Minute, "eve", l, 1, 0)
	asks(t, a, 5*time.Minute, "eve", l, 1, 0)
	if a.Len() != 1 {
		t.Errorf("%d accounts when all but one are empty", a.Len())
	}
}

// An account is forgotten when its own window is empty, though one with a longer window, that was asked for before, is not: the
// number of known tenants is that of those who have used something.
func TestAccountsOfShorterWindows(t *testing.T) {
	a, hour := New(1000), Limit{Tokens: 100, Window: time.Hour}
	asks(t, a, 0, "slow", hour, 1, 0)
	for i := range 100 {
		asks(t, a, time.Second, string(rune('A'+i)), perMinute(100), 1, 0)
	}
	for range 50 {
		asks(t, a, 2*time.Minute, "again", perMinute(100), 1, 0)
	}
	if a.Len() != 2 {
		t.Errorf("%d accounts, want those of two who have used something", a.Len())
	}
	asks(t, a, 3*time.Minute, "slow", hour, 100, time.Hour-3*time.Minute) // its token still counts
	asks(t, a, time.Hour, "slow", hour, 100, 0)
	asks(t, a, time.Hour, "slow", hour, 1, time.Hour)
	if a.Len() != 1 {
		t.Errorf("%d accounts, want one", a.Len())
	}
}

// A smaller bound takes effect with the next requests, two accounts at a time.
func TestABoundThatShrinks(t *testing.T) {
	a, l := New(100), perMinute(100)
	for i := range 100 {
		asks(t, a, 0, string(rune('a'+i)), l, 1, 0)
	}
	a.SetMost(3)
	for i := range 60 {
		asks(t, a, 0, string(rune('a'+i%2)), l, 1, 0)
	}
	if a.Len() != 3 {
		t.Errorf("%d accounts", a.Len())
	}
}

// A clock that goes back frees nothing and takes nothing.
func TestTheClockGoesBack(t *testing.T) {
	a, l := New(10), perMinute(100)
	asks(t, a, time.Hour, "ada", l, 100, 0)
	asks(t, a, 0, "ada", l, 1, time.Minute)
	asks(t, a, time.Hour+time.Minute, "ada", l, 1, 0)
}

// By a list of all that was ever used: nothing is admitted that the exact window has no room for, and nothing is refused
// that a window longer by a sixtieth has room for. The time that a refused request is told is right.
func TestAgainstAList(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := Limit{Tokens: 1 + rng.Int64N(1000), Window: time.Duration(1+rng.IntN(100)) * time.Second}
		a, now := New(10), time.Duration(0)
		type use struct {
			at     time.Duration
			tokens int64
			hold   *Hold
		}
		var uses []*use
		within := func(window time.Duration) (used int64) {
			for _, u := range uses {
				if now-u.at < window {
					used += u.tokens
				}
			}
			return used
		}
		for range 400 {
			now += time.Duration(rng.Int64N(int64(l.Window) / 20))
			if open := slices.IndexFunc(uses, func(u *use) bool { return u.hold != nil }); open >= 0 && rng.IntN(3) == 0 {
				u := uses[open]
				used := rng.Int64N(2*u.tokens + 1)
				a.Settle(at(now), u.hold, used, l)
				if u.hold = nil; used > u.tokens {
					uses = append(uses, &use{at: now, tokens: used - u.tokens})
				} else {
					u.tokens = used
				}
				continue
			}
			tokens := 1 + rng.Int64N(l.Tokens/3+1)
			h := new(Hold)
			_, wait := a.Reserve(at(now), "ada", l, tokens, h)
			need := min(tokens, l.Tokens)
			switch exact, longer := within(l.Window), within(l.Window+l.Window/buckets+1); {
			case wait == 0 && exact+need > l.Tokens:
				t.Fatalf("seed %d: %d of %d are used, and %d more admitted", seed, exact, l.Tokens, need)
			case wait != 0 && longer+need <= l.Tokens:
				t.Fatalf("seed %d: %d of %d are used, and %d more refused", seed, longer, l.Tokens, need)
			case wait != 0:
				var later Hold
				if _, again := a.Reserve(at(now+wait-1), "ada", l, tokens, &later); again == 0 {
					t.Fatalf("seed %d: admitted before the time that it was told", seed)
				}
				if _, again := a.Reserve(at(now+wait), "ada", l, tokens, &later); again != 0 {
					t.Fatalf("seed %d: refused at the time that it was told", seed)
				}
				now += wait
				h = &later
				fallthrough
			default:
				uses = append(uses, &use{at: now, tokens: tokens, hold: h})
			}
			a.checkInvariants(t)
		}
	}
}

// checkInvariants checks the invariants of the package comment.
func (a *Accounts) checkInvariants(t *testing.T) {
	t.Helper()
	if err := a.ending.Problem(); err != nil || a.ending.Len() != len(a.known) {
		t.Fatalf("%d accounts by their ends, %d known: %v", a.ending.Len(), len(a.known), err)
	}
	n := 0
	for x, before := a.oldest, (*account)(nil); x != nil; before, x = x, x.newer {
		n++
		if a.known[x.key] != x || x.older != before {
			t.Fatalf("account %q is not where it should be", x.key)
		}
		var used int64
		for i, b := range x.buckets {
			used += b.tokens
			if b.tokens < 0 || b.last < b.begin || i > 0 && b.begin <= x.buckets[i-1].begin {
				t.Fatalf("account %q has the buckets %+v", x.key, x.buckets)
			}
		}
		if used != x.used || len(x.buckets) > mostBuckets {
			t.Fatalf("account %q has used %d, its %d buckets %d", x.key, x.used, len(x.buckets), used)
		}
		if x.newer == nil && a.newest != x {
			t.Fatalf("account %q is not the newest", x.key)
		}
	}
	if n != len(a.known) {
		t.Fatalf("%d accounts in order, %d known", n, len(a.known))
	}
}

// The ends of ranges: what leaves the window at a moment is gone then; a request of nothing counts as one token; nobody uses
// less than nothing; and a window that was refunded is as empty as a new one.
func TestEnds(t *testing.T) {
	a, l := New(10), perMinute(100)
	asks(t, a, 0, "ada", l, 40, 0)
	var h Hold
	if s, _ := a.Reserve(at(time.Minute), "ada", l, 0, &h); s != (Standing{Limit: 100, Remaining: 99, Reset: time.Minute}) {
		t.Errorf("when the window has passed: %+v", s)
	}
	if s := a.Settle(at(time.Minute), &h, -50, l); s.Remaining != 100 {
		t.Errorf("after a use of less than nothing: %+v", s)
	}
	a.checkInvariants(t)
	asks(t, a, time.Minute+time.Second, "ada", l, 500, 0)
}

// A longer window after a reload keeps the short buckets of the former one, of which there are no more than before.
func TestBucketsAreBounded(t *testing.T) {
	a, short, long := New(10), Limit{Tokens: 1_000_000, Window: time.Second}, Limit{Tokens: 1_000_000, Window: time.Hour}
	for i := range 59 {
		asks(t, a, time.Duration(i)*17*time.Millisecond, "ada", short, 1, 0)
	}
	for i := range 59 {
		asks(t, a, time.Second+time.Duration(i)*time.Minute, "ada", long, 1, 0)
	}
	var h Hold
	if s, _ := a.Reserve(at(59*time.Minute+2*time.Second), "ada", long, 1, &h); s.Remaining != 1_000_000-119 {
		t.Errorf("of 119 tokens: %+v", s)
	}
	a.checkInvariants(t)
}

// A tenant with two roles uses no more of the one with the longer window by asking in the other one: what it has used is not
// forgotten. In the other it is not held up by what it used long ago.
func TestAShortWindowForgetsNothingOfALongOne(t *testing.T) {
	a, long, short := New(9), Limit{Tokens: 100, Window: time.Hour}, Limit{Tokens: 100, Window: time.Second}
	asks(t, a, 0, "ada", long, 99, 0)
	asks(t, a, 2*time.Second, "ada", short, 100, 0)
	asks(t, a, 2*time.Second, "ada", short, 1, time.Second)
	asks(t, a, 3*time.Second, "ada", long, 1, time.Hour-time.Second) // the 99 leave, and then the 100
	now := 3 * time.Second
	for range 10_000 { // of ten an eighth of a second, all are admitted
		now += 125 * time.Millisecond
		asks(t, a, now, "ada", short, 10, 0)
	}
	var h Hold
	if _, wait := a.Reserve(at(now), "ada", long, 1, &h); wait < 30*time.Minute {
		t.Errorf("an hour's quota that is used up has room in %v", wait)
	}
	now += time.Hour
	asks(t, a, now, "ada", long, 100, 0)
}

// A refund is that of its request, also if its bucket became one with others.
func TestRefundOfMergedBuckets(t *testing.T) {
	a, long, short := New(9), Limit{Tokens: 1000, Window: time.Hour}, Limit{Tokens: 1000, Window: time.Second}
	asks(t, a, 0, "ada", long, 100, 0)
	var holds []*Hold
	for i := range 5 * mostBuckets {
		holds = append(holds, asks(t, a, time.Second+time.Duration(i)*100*time.Millisecond, "ada", short, 1, 0))
	}
	var s Standing
	for _, h := range holds {
		s = a.Settle(at(time.Minute), h, 0, long)
		a.checkInvariants(t)
	}
	if s.Remaining != 900 {
		t.Errorf("%d remain of 1000, of which 100 are used", s.Remaining)
	}
}
