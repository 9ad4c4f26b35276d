package extproc

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// bytesPerSecond is how slowly a body may arrive for as long as it likes: each so many bytes move its end by a second.
const bytesPerSecond = 64 << 10

// deadline is until when an awaited body has to be whole.
type deadline struct {
	end      time.Time // with nothing received
	received int64     // bytes, or announced ones
	key      time.Time // its place in the heap is by this time, which is never after at()
	place    int
}

func (d *deadline) at() time.Time {
	return d.end.Add(time.Duration(d.received/bytesPerSecond) * time.Second)
}

// dueHeap has the awaited bodies, the first one due first. A body that receives more stays where it is, and moves when
// its turn comes, so that a part that arrives costs nothing here.
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

// watch puts a body among those that are due some time.
func (b *bodyAccount) watch(a *arrival) {
	a.deadline.key = a.deadline.at()
	heap.Push(&b.due, a)
	b.stand()
}

// unwatch takes it out. The timer stays where it is, since another body comes before long; if none does, it finds nothing
// to do, once.
func (b *bodyAccount) unwatch(a *arrival) { heap.Remove(&b.due, a.deadline.place) }

// stand puts the one timer at the first time that somebody may be due, unless it stands before.
func (b *bodyAccount) stand() {
	if len(b.due) == 0 {
		return
	}
	first := b.due[0].deadline.key
	if b.standing && !first.Before(b.standsAt) {
		return
	}
	b.standing, b.standsAt = true, first
	if wait := time.Until(first); b.timer == nil {
		b.timer = time.AfterFunc(wait, b.expire)
	} else {
		b.timer.Reset(wait)
	}
}

// expire gives up the bodies that are due. It is the timer's.
func (b *bodyAccount) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for len(b.due) > 0 && !b.due[0].deadline.key.After(now) {
		a := b.due[0]
		if at := a.deadline.at(); at.After(now) { // more has come since
			a.deadline.key = at
			heap.Fix(&b.due, 0)
			continue
		}
		b.expel(a, fmt.Errorf("extproc: %d bytes have come: %w", a.charged, flowcontrol.ErrBodyTimeout))
	}
	b.standing = false
	b.stand()
}
