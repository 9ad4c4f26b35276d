package scheduling

// tournament finds the best of many totals quickly. It is a binary tree whose leaves are the entrants, and each inner
// node has the better total of its two children. A change costs O(log n), and so does finding the best.
type tournament struct {
	leaves int        // the index of the first leaf, and so a power of two
	best   []Standing // by node: the root is 1, the children of n are 2n and 2n+1
	ties   []int32    // by node: the number of leaves below with its total; nil if not counted
}

// out is the total of a leaf that does not take part. All other totals are at least 0.
const out Standing = -1

// enter resets the tournament to the number of entrants, all out; counted makes it count equals, which random
// tie-breaks need. Calls of seat and then play must follow. It reuses its memory.
func (t *tournament) enter(entrants int, counted bool) {
	t.leaves = 1
	for t.leaves < entrants {
		t.leaves *= 2
	}
	t.best = resized(t.best, 2*t.leaves)
	for i := range t.best {
		t.best[i] = out
	}
	if !counted {
		t.ties = nil
		return
	}
	t.ties = resized(t.ties, 2*t.leaves)
	for i := range t.ties[t.leaves:] {
		t.ties[t.leaves+i] = 1
	}
}

// resized returns a slice of the length, in s's memory if that suffices. Its contents are undefined.
func resized[T any](s []T, length int) []T {
	if cap(s) < length {
		return make([]T, length)
	}
	return s[:length]
}

// seat sets a total between enter and play.
func (t *tournament) seat(i int, total Standing) { t.best[t.leaves+i] = total }

// play computes the inner nodes from the leaves.
func (t *tournament) play() {
	for n := t.leaves - 1; n > 0; n-- {
		t.meet(n)
	}
}

// meet computes one inner node from its children and reports whether that changed it.
func (t *tournament) meet(n int) bool {
	left, right := t.best[2*n], t.best[2*n+1]
	better := max(left, right)
	if t.ties == nil {
		changed := better != t.best[n]
		t.best[n] = better
		return changed
	}
	var tied int32
	if left == better {
		tied += t.ties[2*n]
	}
	if right == better {
		tied += t.ties[2*n+1]
	}
	changed := better != t.best[n] || tied != t.ties[n]
	t.best[n], t.ties[n] = better, tied
	return changed
}

// set changes an entrant's total.
func (t *tournament) set(i int, total Standing) {
	n := t.leaves + i
	if t.best[n] == total {
		return
	}
	t.best[n] = total
	for n /= 2; n > 0 && t.meet(n); n /= 2 {
	}
}

// of returns an entrant's total.
func (t *tournament) of(i int) Standing { return t.best[t.leaves+i] }

// totals returns the entrants' totals, which must not be changed.
func (t *tournament) totals() []Standing { return t.best[t.leaves:] }

// top returns the best total; out if there is none.
func (t *tournament) top() Standing { return t.best[1] }

// blockTop returns the best total of the entrants 64 × w to 64 × w + 63.
func (t *tournament) blockTop(w int) Standing { return t.best[max(t.leaves/64, 1)+w] }

// firstFrom returns the first entrant with the best total at or after i, in ring order.
func (t *tournament) firstFrom(i int) int {
	top := t.best[1]
	n := t.leaves + i
	if t.best[n] == top {
		return i
	}
	for ; n > 1; n /= 2 {
		if n%2 == 0 && t.best[n+1] == top { // the next subtree to the right
			return t.firstBelow(n+1, top)
		}
	}
	return t.firstBelow(1, top)
}

// firstBelow returns the first entrant below the node that has the node's total.
func (t *tournament) firstBelow(n int, total Standing) int {
	for n < t.leaves {
		if n *= 2; t.best[n] != total {
			n++
		}
	}
	return n - t.leaves
}

// tied returns the number of entrants with the best total. It requires counting.
func (t *tournament) tied() int { return int(t.ties[1]) }

// nth returns the k-th entrant, from 0, with the best total. It requires counting.
func (t *tournament) nth(k int) int {
	top, n := t.best[1], 1
	for n < t.leaves {
		n *= 2
		if t.best[n] != top {
			n++
		} else if left := int(t.ties[n]); k >= left {
			k -= left
			n++
		}
	}
	return n - t.leaves
}
