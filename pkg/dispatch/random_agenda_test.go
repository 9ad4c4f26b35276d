package dispatch_test

import (
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// action is what happens at a time.
type action struct {
	at     time.Time
	order  uint64
	do     func()
	number int32 // in the agenda
}

// Key orders actions by time, then in the order of their making.
func (a *action) Key() heap.Key { return heap.Key{Value: heap.At(a.at).Value, Seq: a.order} }

func (a *action) Handle() *int32 { return &a.number }
