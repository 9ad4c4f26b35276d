package scheduling

import (
	"math/rand/v2"
	"testing"
)

// A tournament agrees with a search through all entrants after any changes.
func TestTournament(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var tree tournament // reused
	for _, size := range []int{0, 1, 2, 3, 63, 64, 65, 200} {
		tree.enter(size, size%2 == 0)
		tree.play()
		totals := make([]Standing, size)
		for i := range totals {
			totals[i] = out
		}
		for range 500 {
			if size > 0 {
				i := r.IntN(size)
				totals[i] = Standing(r.IntN(4) - 1)
				tree.set(i, totals[i])
			}
			checkTournament(t, &tree)
			top, tied := out, []int{}
			for i, total := range totals {
				if total > top {
					top, tied = total, nil
				}
				if total == top {
					tied = append(tied, i)
				}
			}
			if tree.top() != top {
				t.Fatalf("%v: best %d, want %d", totals, tree.top(), top)
			}
			if top == out {
				continue
			}
			from := r.IntN(size)
			want := tied[0]
			for _, i := range tied {
				if i >= from {
					want = i
					break
				}
			}
			if got := tree.firstFrom(from); got != want {
				t.Fatalf("%v: first from %d is %d, want %d", totals, from, got, want)
			}
			if tree.ties == nil {
				continue
			}
			if tree.tied() != len(tied) {
				t.Fatalf("%v: %d equals, want %d", totals, tree.tied(), len(tied))
			}
			if k := r.IntN(len(tied)); tree.nth(k) != tied[k] {
				t.Fatalf("%v: the %d-th of the best is %d, want %d", totals, k, tree.nth(k), tied[k])
			}
		}
	}
}
