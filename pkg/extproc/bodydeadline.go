package extproc

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// bytesPerSecond is the number of bytes that extend the deadline of a body by one second. A body may arrive at this
// rate forever.
const bytesPerSecond = 64 << 10

// deadline is the time by which an awaited body must be complete.
type deadline struct {
	begun    time.Time     // of the stream
	timeout  time.Duration // if nothing is received
	received int64         // bytes received or announced
	key      time.Time     // the order in the heap; never after at()
	number   int32         // in the heap; 0 if it is not in it
}

// allowed returns the time for the body: the timeout, and one second for every bytesPerSecond.
func (d *deadline) allowed() time.Duration {
	return d.timeout + time.Duration(d.received/bytesPerSecond)*time.Second
}

// at returns the deadline.
func (d *deadline) at() time.Time { return d.begun.Add(d.allowed()) }

// missed returns the error of a body that has missed its deadline, of which this many bytes are held.
func (d *deadline) missed(held int64) error {
	err := fmt.Errorf("extproc: %d bytes have arrived: %w", held, flowcontrol.ErrBodyTimeout)
	return &flowcontrol.LimitedError{Name: dispatch.LimitBodyTimeout, Value: d.allowed().Milliseconds(), Err: err}
}

// Key makes the body with the earliest key the first one.
func (d *deadline) Key() heap.Key { return heap.At(d.key) }

func (d *deadline) Handle() *int32 { return &d.number }

func (d *deadline) due() *deadline { return d }

// deadlines has the deadlines of awaited bodies, and a timer at the earliest key. A body that receives a part keeps its
// key until the key is due, so parts cost nothing here. The zero value is empty.
type deadlines[B interface {
	heap.Item
	due() *deadline
}] struct {
	bodies   heap.Heap[B]
	timer    *time.Timer
	armed    bool // the timer is
	armedFor time.Time
}

// add adds a body. The timer calls expire.
func (d *deadlines[B]) add(body B, expire func()) {
	of := body.due()
	of.key = of.at()
	d.bodies.Push(body)
	d.arm(expire)
}

// remove removes a body. The timer stays armed, since another body usually follows; otherwise it fires once in vain.
func (d *deadlines[B]) remove(body B) { d.bodies.Remove(body) }

// arm sets the timer to the earliest key, unless it is set to an earlier time.
func (d *deadlines[B]) arm(expire func()) {
	if d.bodies.Len() == 0 {
		return
	}
	first := d.bodies.Min().due().key
	if d.armed && !first.Before(d.armedFor) {
		return
	}
	d.armed, d.armedFor = true, first
	if wait := time.Until(first); d.timer == nil {
		d.timer = time.AfterFunc(wait, expire)
	} else {
		d.timer.Reset(wait)
	}
}

// late returns a body whose deadline has passed, if there is one.
func (d *deadlines[B]) late(now time.Time) (body B, ok bool) {
	for d.bodies.Len() > 0 {
		body = d.bodies.Min()
		of := body.due()
		if of.key.After(now) {
			break
		}
		at := of.at()
		if !at.After(now) {
			return body, true
		}
		of.key = at // it has received more since
		d.bodies.Fix(body)
	}
	return body, false
}

// fired sets the timer again after it has fired.
func (d *deadlines[B]) fired(expire func()) {
	d.armed = false
	d.arm(expire)
}
