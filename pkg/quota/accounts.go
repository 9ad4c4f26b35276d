package quota

import (
	"cmp"
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// Accounts has the accounts of all tenants with use in their windows.
type Accounts struct {
	most   int
	known  map[string]*account `graph:"key"`
	oldest *account            // asked for least recently
	newest *account
	ending heap.Heap[*account] // by when their windows are empty

	begun bool
	epoch time.Time
	now   time.Duration // since the epoch; never goes back
}

// New returns empty accounts, at most most of them.
func New(most int) *Accounts { return &Accounts{most: most, known: map[string]*account{}} }

// SetMost changes the largest number of accounts. It forgets no account at once.
func (a *Accounts) SetMost(most int) { a.most = most }

// Len returns the number of accounts.
func (a *Accounts) Len() int { return len(a.known) }

// Hold is one request's reservation, until it is settled. The zero value holds nothing.
type Hold struct {
	account *account
	begin   time.Duration // of the bucket that it counts in
	tokens  int64
}

// Held reports whether the hold has not been settled yet.
func (h *Hold) Held() bool { return h.account != nil }

// Standing is an account's quota, and the rest of it.
type Standing struct {
	// Limit is the quota, and Remaining the rest of it, at least 0; in tokens.
	Limit, Remaining int64
	// Reset is the time until the whole quota is free, without further use.
	Reset time.Duration
}

// Reserve reserves tokens, at least 1, in h, which must hold nothing, and returns the account's standing after that. If
// the window has no room it reserves nothing, and wait is the time until there is room without further use.
func (a *Accounts) Reserve(now time.Time, key string, l Limit, tokens int64, h *Hold) (s Standing, wait time.Duration) {
	a.advance(now)
	x := a.asked(key)
	x.widen(a.now, l.Window)
	tokens = max(1, tokens)
	most := l.Tokens - min(tokens, l.Tokens)
	if wait = x.until(a.now, l.Window, most); wait == 0 {
		*h = Hold{account: x, tokens: tokens, begin: x.add(a.now, l.Window, tokens)}
	}
	a.renew(x)
	a.forget()
	return x.standing(a.now, l), wait
}

// Settle settles h, if it holds anything, with the tokens that the request has used. It returns the account's standing
// after that under the quota l.
func (a *Accounts) Settle(now time.Time, h *Hold, used int64, l Limit) Standing {
	a.advance(now)
	x := h.account
	if x == nil {
		return Standing{}
	}
	x.slide(a.now)
	switch more := max(0, used) - h.tokens; {
	case more < 0:
		x.takeBack(h.begin, -more)
	case more > 0:
		if a.known[x.key] != x { // it was forgotten meanwhile
			window := x.window
			x = a.asked(x.key)
			x.widen(a.now, window)
		}
		x.add(a.now, cmp.Or(l.Window, x.window), more)
	}
	if a.known[x.key] == x {
		a.renew(x)
		a.forget()
	}
	*h = Hold{}
	return x.standing(a.now, l)
}

// standing returns the account's standing.
func (x *account) standing(now time.Duration, l Limit) Standing {
	used, _ := x.usedIn(now, l.Window)
	return Standing{Limit: l.Tokens, Remaining: max(0, l.Tokens-used), Reset: x.until(now, l.Window, 0)}
}

// advance sets the time.
func (a *Accounts) advance(now time.Time) {
	if !a.begun {
		a.begun, a.epoch = true, now
	}
	a.now = max(a.now, now.Sub(a.epoch))
}

// asked returns the account of a key and makes it the newest.
func (a *Accounts) asked(key string) *account {
	x := a.known[key]
	if x == nil {
		x = &account{key: key}
		a.known[key] = x
	} else {
		a.unlink(x)
	}
	x.older, x.newer = a.newest, nil
	if a.newest != nil {
		a.newest.newer = x
	} else {
		a.oldest = x
	}
	a.newest = x
	return x
}

// renew updates the time at which an account's window is empty.
func (a *Accounts) renew(x *account) {
	if x.ends = x.until(a.now, x.window, 0) + a.now; a.ending.Contains(x) {
		a.ending.Fix(x)
	} else {
		a.ending.Push(x)
	}
}

// forget forgets two accounts: with empty windows or, if there are too many, the least recently asked for. The newest
// stays.
func (a *Accounts) forget() {
	for range 2 {
		x := a.ending.Min()
		if x.ends > a.now || x == a.newest {
			x = a.oldest
			if x.slide(a.now); x.used > 0 && len(a.known) <= a.most {
				return
			}
		}
		if x == a.newest {
			return
		}
		a.drop(x)
	}
}

func (a *Accounts) drop(x *account) {
	a.ending.Remove(x)
	a.unlink(x)
	delete(a.known, x.key)
}

func (a *Accounts) unlink(x *account) {
	if x.older != nil {
		x.older.newer = x.newer
	} else {
		a.oldest = x.newer
	}
	if x.newer != nil {
		x.newer.older = x.older
	} else {
		a.newest = x.older
	}
	x.older, x.newer = nil, nil
}
