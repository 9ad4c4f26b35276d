package simulate

import "time"

// agenda is when each engine does something next: a heap of engines by time, then by number.
type agenda struct {
	at    []time.Time // by engine; zero: nothing will happen
	order []int32     // the heap of those that will do something
	place []int32     // by engine: its index in order, -1: it is not there
}

func newAgenda(engines int) *agenda {
	a := &agenda{at: make([]time.Time, engines), place: make([]int32, engines)}
	for i := range a.place {
		a.place[i] = -1
	}
	return a
}

// first returns the engine that is next; ok is false if nothing will happen.
func (a *agenda) first() (engine int, at time.Time, ok bool) {
	if len(a.order) == 0 {
		return 0, time.Time{}, false
	}
	return int(a.order[0]), a.at[a.order[0]], true
}

// set sets when an engine does something next; ok is false for never.
func (a *agenda) set(engine int, at time.Time, ok bool) {
	i := a.place[engine]
	switch {
	case !ok && i < 0:
		return
	case !ok:
		last := int32(len(a.order) - 1)
		a.swap(i, last)
		a.order, a.place[engine] = a.order[:last], -1
		if i < last {
			a.up(i)
			a.down(i)
		}
		return
	case i < 0:
		i = int32(len(a.order))
		a.order, a.place[engine] = append(a.order, int32(engine)), i
	}
	a.at[engine] = at
	a.up(i)
	a.down(a.place[engine])
}

func (a *agenda) less(i, j int32) bool {
	x, y := a.order[i], a.order[j]
	if c := a.at[x].Compare(a.at[y]); c != 0 {
		return c < 0
	}
	return x < y
}

func (a *agenda) swap(i, j int32) {
	a.order[i], a.order[j] = a.order[j], a.order[i]
	a.place[a.order[i]], a.place[a.order[j]] = i, j
}

func (a *agenda) up(i int32) {
	for i > 0 && a.less(i, (i-1)/2) {
		a.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (a *agenda) down(i int32) {
	for {
		child := 2*i + 1
		if child >= int32(len(a.order)) {
			return
		}
		if child+1 < int32(len(a.order)) && a.less(child+1, child) {
			child++
		}
		if !a.less(child, i) {
			return
		}
		a.swap(i, child)
		i = child
	}
}
