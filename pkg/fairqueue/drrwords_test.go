package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Random arrivals, cancellations, blocked classes and releases give the same order, step by step, as Dynamo's
// description, which is repeated here without a closed form: plain lists, and every class asked again and again.
func TestDRRLikeItsWords(t *testing.T) {
	for seed := range seeds(400) {
		random := rand.New(rand.NewPCG(seed, 21))
		cursor := Cursor(seed % 2)
		var list []ClassConfig
		for i := range 2 + random.IntN(4) {
			list = append(list, ClassConfig{Name: fmt.Sprint(i), Quantum: Cost(1 + random.IntN(60)), Order: Order(random.IntN(2))})
		}
		q := classes(t, cursor, list...)
		w := words{list: list, advance: cursor == Advance, waiting: make([][]*Request, len(list)), deficit: make([]int64, len(list)), blocked: make([]bool, len(list))}
		for step := range 300 {
			switch op := random.IntN(10); {
			case op < 5:
				i := random.IntN(len(list))
				r := &Request{Path: &Path{Class: list[i].Name, Strict: random.IntN(12) / 11}, Cost: Cost(1 + random.IntN(200))}
				mustPush(t, q, r)
				w.waiting[i] = append(w.waiting[i], r)
			case op < 8:
				want := w.pop()
				if got := popNext(q); got != want {
					t.Fatalf("sequence %d, step %d: %+v, want %+v", seed, step, got, want)
				}
			case op == 8:
				if i := random.IntN(len(list)); len(w.waiting[i]) > 0 {
					q.CloseLane(w.waiting[i][0], LaneFull)
					w.blocked[i] = true
				}
			default:
				q.OpenLanes()
				clear(w.blocked)
			}
			mustHold(t, q)
		}
	}
}

// words is deficit round robin as Dynamo's documentation describes it.
type words struct {
	list    []ClassConfig
	advance bool
	waiting [][]*Request
	deficit []int64
	blocked []bool
	cursor  int
}

// head returns the index of the next request of class i.
func (w *words) head(i int) (at int) {
	first := func(a, b *Request) bool {
		if a.Path.Strict != b.Path.Strict {
			return a.Path.Strict > b.Path.Strict
		}
		return w.list[i].Order == WSPT && a.Cost < b.Cost
	}
	for n, r := range w.waiting[i] {
		if first(r, w.waiting[i][at]) {
			at = n
		}
	}
	return at
}

func (w *words) pop() *Request {
	n := len(w.list)
	may := func(i int) bool { return len(w.waiting[i]) > 0 && !w.blocked[i] }
	if !slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5}[:n], may) {
		return nil
	}
	for i := range n { // nobody has saved more than its head costs, and one quantum
		if may(i) {
			w.deficit[i] = min(w.deficit[i], int64(w.waiting[i][w.head(i)].Cost+w.list[i].Quantum))
		}
	}
	for round := 0; ; round++ {
		for j := range n { // first those that can pay; in the first round each is given its quantum when it is asked
			i := (w.cursor + j) % n
			if !may(i) {
				continue
			}
			at := w.head(i)
			r := w.waiting[i][at]
			if round == 0 && w.deficit[i] < int64(r.Cost) {
				w.deficit[i] += int64(w.list[i].Quantum)
			}
			if w.deficit[i] < int64(r.Cost) {
				continue
			}
			w.deficit[i] -= int64(r.Cost)
			w.waiting[i] = slices.Delete(w.waiting[i], at, at+1)
			w.cursor = i
			if w.advance || len(w.waiting[i]) == 0 || w.deficit[i] < int64(w.waiting[i][w.head(i)].Cost) {
				w.cursor = (i + 1) % n
			}
			if len(w.waiting[i]) == 0 {
				w.deficit[i] = 0
				w.blocked[i] = false // a lane is known while somebody waits in it
			}
			return r
		}
		for i := range n {
			if may(i) {
				w.deficit[i] += int64(w.list[i].Quantum)
			}
		}
	}
}
