package scrape

import "time"

// The time for which a reading counts, and the time after which it is forgotten.
const (
	fresh     = 3 * time.Second
	forgotten = 10 * time.Second
)

// kept is the number of scrapes whose least difference is the foreign load.
const kept = 3

// load is the foreign load of one endpoint. It has no clock.
type load struct {
	differences [kept]int // of the last scrapes; the newest is at (n−1) % kept
	n           int       // scrapes so far
	at          time.Time // of the newest
}

// observe records a scrape at now: the engine's count of requests, and Weir's own counts at the scrape's start and end.
func (l *load) observe(now time.Time, counted, ownBefore, ownAfter int) {
	l.differences[l.n%kept] = counted - min(ownBefore, ownAfter)
	l.n++
	l.at = now
}

// foreign returns the foreign load at now: 0 until three scrapes agree on some.
func (l *load) foreign(now time.Time) int {
	if l.n < kept {
		return 0
	}
	least := l.differences[0]
	for _, d := range l.differences[1:] {
		least = min(least, d)
	}
	if least <= 0 {
		return 0
	}
	left := forgotten - now.Sub(l.at)
	switch {
	case left <= 0:
		return 0
	case left >= forgotten-fresh:
		return least
	}
	return int((int64(least)*int64(left) + int64(forgotten-fresh) - 1) / int64(forgotten-fresh))
}

// known reports whether the newest reading still counts.
func (l *load) known(now time.Time) bool { return l.n > 0 && now.Sub(l.at) < fresh }

// over reports whether the readings are forgotten.
func (l *load) over(now time.Time) bool { return l.n == 0 || now.Sub(l.at) >= forgotten }
