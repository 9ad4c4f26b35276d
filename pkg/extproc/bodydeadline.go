package extproc

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// bytesPerSecond is how many bytes extend the deadline of a body by one second. A body may arrive at this rate forever.
const bytesPerSecond = 64 << 10

// deadline is when an awaited body has to be whole.
type deadline struct {
	end      time.Time // if nothing is received
	received int64     // bytes received or announced
	key      time.Time // the order in the heap; never after at()
	place    int       // in the heap
}

// at returns the deadline.
func (d *deadline) at() time.Time {
	return d.end.Add(time.Duration(d.received/bytesPerSecond) * time.Second)
}

// dueHeap has the awaited bodies, the one with the earliest key first. A body that receives a part keeps its key until the
// key is due, so that parts cost nothing here.
type dueHeap []*arrival

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].deadline.key.Before(h[j].deadline.key) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].deadline.place, h[j].deadline.place = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	a := x.(*arrival)
	a.deadline.place = len(*h)
	*h = append(*h, a)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}

// schedule adds a body to the heap. The caller holds b.mu.
func (b *bodyMemory) schedule(a *arrival) {
	a.deadline.key = a.deadline.at()
	heap.Push(&b.due, a)
	b.arm()
}

// unschedule removes a body from the heap. The timer stays armed, since another body usually follows; if none does, the
// timer fires once for nothing. The caller holds b.mu.
func (b *bodyMemory) unschedule(a *arrival) { heap.Remove(&b.due, a.deadline.place) }

// arm sets the timer to the earliest key, unless it is set to an earlier time. The caller holds b.mu.
func (b *bodyMemory) arm() {
	if len(b.due) == 0 {
		return
	}
	first := b.due[0].deadline.key
	if b.armed && !first.Before(b.armedFor) {
		return
	}
	b.armed, b.armedFor = true, first
	if wait := time.Until(first); b.timer == nil {
		b.timer = time.AfterFunc(wait, b.expire)
	} else {
		b.timer.Reset(wait)
	}
}

// expire expels the bodies whose deadline has passed. The timer calls it.
func (b *bodyMemory) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for len(b.due) > 0 && !b.due[0].deadline.key.After(now) {
		a := b.due[0]
		if at := a.deadline.at(); at.After(now) { // it has received more since
			a.deadline.key = at
			heap.Fix(&b.due, 0)
			continue
		}
		b.expel(a, fmt.Errorf("extproc: %d bytes have arrived: %w", a.charged, flowcontrol.ErrBodyTimeout))
	}
	b.armed = false
	b.arm()
}
