package structures

import (
	stdheap "container/heap"

	"github.com/weir-epp/weir/internal/heap"
)

// flow is an element of an order: what a flow of a lane is in the queue.
type flow struct {
	key    heap.Key // the tag of its head, then the number of its arrival
	weight uint64
	idle   bool // nothing of it waits

	handle int32 // heap.Heap's
	index  int   // container/heap's; -1: it is in none

	bucket     int // calendar's; -1: it is in none
	prev, next *flow

	of *shard // sharded's
}

func newFlow(weight uint64) *flow { return &flow{weight: weight, index: -1, bucket: -1} }

func (f *flow) Key() heap.Key  { return f.key }
func (f *flow) Handle() *int32 { return &f.handle }

// order keeps flows by their keys.
type order interface {
	push(f *flow)
	min() *flow // nil: empty
	fix(f *flow, to heap.Key)
	remove(f *flow)
}

// four is the heap that the queue has.
type four struct{ heap.Heap[*flow] }

func (o *four) push(f *flow)   { o.Push(f) }
func (o *four) min() *flow     { return o.Min() }
func (o *four) remove(f *flow) { o.Remove(f) }
func (o *four) fix(f *flow, to heap.Key) {
	f.key = to
	o.Fix(f)
}

// binary is the standard library's heap.
type binary struct{ list flows }

type flows []*flow

func (l flows) Len() int           { return len(l) }
func (l flows) Less(i, j int) bool { return l[i].key.Before(l[j].key) }
func (l flows) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}

func (l *flows) Push(x any) {
	f := x.(*flow)
	f.index = len(*l)
	*l = append(*l, f)
}

func (l *flows) Pop() any {
	f := (*l)[len(*l)-1]
	*l, f.index = (*l)[:len(*l)-1], -1
	return f
}

func (o *binary) push(f *flow)   { stdheap.Push(&o.list, f) }
func (o *binary) remove(f *flow) { stdheap.Remove(&o.list, f.index) }
func (o *binary) fix(f *flow, to heap.Key) {
	f.key = to
	stdheap.Fix(&o.list, f.index)
}

func (o *binary) min() *flow {
	if len(o.list) == 0 {
		return nil
	}
	return o.list[0]
}
