package extproc

import "sync/atomic"

// bodyAccount counts the bytes of bodies that are held. Its zero value is empty.
type bodyAccount struct{ held atomic.Int64 }

// take adds n bytes unless there would be more than limit.
func (a *bodyAccount) take(n, limit int64) bool {
	if a.held.Add(n) > limit {
		a.held.Add(-n)
		return false
	}
	return true
}

// give returns n bytes.
func (a *bodyAccount) give(n int64) { a.held.Add(-n) }
