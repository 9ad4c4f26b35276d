package simulate

import (
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// agenda has the time of each engine's next event.
type agenda struct {
	all  []due // by engine
	heap heap.Heap[*due]
}

// due is the time of one engine's next event.
type due struct {
	at     time.Time
	engine int
	number int32 // in the heap
}

// Key orders engines by time, then by their number.
func (d *due) Key() heap.Key {
	k := heap.At(d.at)
	k.Seq = uint64(d.engine)
	return k
}

// Handle returns the number in the heap.
func (d *due) Handle() *int32 { return &d.number }

func newAgenda(engines int) *agenda {
	a := &agenda{all: make([]due, engines)}
	for i := range a.all {
		a.all[i].engine = i
	}
	return a
}

// first returns the engine with the next event; ok is false if there is none.
func (a *agenda) first() (engine int, at time.Time, ok bool) {
	if a.heap.Len() == 0 {
		return 0, time.Time{}, false
	}
	d := a.heap.Min()
	return d.engine, d.at, true
}

// set sets the time of an engine's next event; ok is false for never.
func (a *agenda) set(engine int, at time.Time, ok bool) {
	d := &a.all[engine]
	known := a.heap.Contains(d)
	switch {
	case ok:
		d.at = at
		if known {
			a.heap.Fix(d)
		} else {
			a.heap.Push(d)
		}
	case known:
		a.heap.Remove(d)
	}
}
