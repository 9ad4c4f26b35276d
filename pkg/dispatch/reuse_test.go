package dispatch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// After an event that looks at very many waiters, the machine keeps little room for them in the lists that it reuses, and of
// the waiters nothing: here all of a lane come to another one because an engine unloads their model, and end together.
func TestLittleIsKeptOfACrowd(t *testing.T) {
	for _, n := range []int{10, 3000} {
		x := newFleetOf(t, 2, func(int) []string { return []string{"a", "b"} }, nil)
		for i := range n {
			x.arrives(fmt.Sprint(i), 0, scheduling.Ask{Model: "a"})
			x.arrives(fmt.Sprint(i), 0, scheduling.Ask{Model: "b"})
		}
		waited := len(x.waiting)
		was := x.waiting[waited-1].queued.Lane
		x.endpoints[1].Models = []string{"b"}
		x.publish()
		if now := x.waiting[len(x.waiting)-1].queued.Lane; now == was || len(x.waiting) != waited {
			t.Fatalf("%d of %d wait, the model's lane was %q and is %q", len(x.waiting), waited, was, now)
		}
		x.Drain(x.clock)
		if len(x.Verdicts()) != waited {
			t.Fatalf("%d verdicts, want %d", len(x.Verdicts()), waited)
		}
		x.Advance(x.clock)
		for name, list := range map[string][]*fairqueue.Request{"heads": x.heads, "beside": x.beside} {
			kept := slices.ContainsFunc(list[:cap(list)], func(r *fairqueue.Request) bool { return r != nil })
			if kept || cap(list) > mostKept {
				t.Errorf("%d wait: %s keeps room for %d, and waiters: %t", n, name, cap(list), kept)
			}
		}
		if cap(x.moves) > mostKept || slices.ContainsFunc(x.moves[:cap(x.moves)], func(m fairqueue.Move) bool { return m.Request != nil }) {
			t.Errorf("%d wait: room for %d moves is kept, or waiters are", n, cap(x.moves))
		}
		if v := x.Verdicts(); cap(v) > mostKept || slices.ContainsFunc(v[:cap(v)], func(w *Waiter) bool { return w != nil }) {
			t.Errorf("%d wait: room for %d verdicts is kept, or waiters are", n, cap(v))
		}
	}
}
