package extproc

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// bytesPerSecond is how many bytes extend the deadline of a body by one second. A body may arrive at this rate forever.
const bytesPerSecond = 64 << 10

// deadline is when an awaited body has to be whole.
type deadline struct {
	end      time.Time // if nothing is received
	received int64     // bytes received or announced
	key      time.Time // the order in the heap; never after at()
	number   int32     // in the heap; 0 if it is not in it
}

// at returns the deadline.
func (d *deadline) at() time.Time {
	return d.end.Add(time.Duration(d.received/bytesPerSecond) * time.Second)
}

// dueBody is an awaited body, the one with the earliest key first. A body that receives a part keeps its key until the key is
// due, so that parts cost nothing here.
type dueBody arrival

func (a *dueBody) Key() heap.Key { return heap.At(a.deadline.key) }

func (a *dueBody) Handle() *int32 { return &a.deadline.number }

// schedule adds a body to the heap. The caller holds b.mu.
func (b *bodyMemory) schedule(a *arrival) {
	a.deadline.key = a.deadline.at()
	b.due.Push((*dueBody)(a))
	b.arm()
}

// unschedule removes a body from the heap. The timer stays armed, since another body usually follows; if none does, the
// timer fires once for nothing. The caller holds b.mu.
func (b *bodyMemory) unschedule(a *arrival) { b.due.Remove((*dueBody)(a)) }

// arm sets the timer to the earliest key, unless it is set to an earlier time. The caller holds b.mu.
func (b *bodyMemory) arm() {
	if b.due.Len() == 0 {
		return
	}
	first := b.due.Min().deadline.key
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
	for b.due.Len() > 0 && !b.due.Min().deadline.key.After(now) {
		a := (*arrival)(b.due.Min())
		if at := a.deadline.at(); at.After(now) { // it has received more since
			a.deadline.key = at
			b.due.Fix((*dueBody)(a))
			continue
		}
		b.expel(a, fmt.Errorf("extproc: %d bytes have arrived: %w", a.charged, flowcontrol.ErrBodyTimeout))
	}
	b.armed = false
	b.arm()
}
