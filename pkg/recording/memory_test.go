package recording_test

import (
	"runtime"
	"testing"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// With 10,000 requests waiting, the recording takes its limit and at most a quarter more, and its follower, which has a
// machine of its own, less than 1.5 KiB for each of them.
func TestRecordingMemory(t *testing.T) {
	const waiters = 10_000
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	d := newQuietDriverOf(t, func(c *dispatch.Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 2*waiters, 2*waiters })
	for range waiters {
		d.arriveAs("a", 1, "01234567-89ab-cdef-0123-456789abcdef")
	}
	d.recorder.Seal()
	ring := d.recorder.Memory()
	before := heap()
	if err := d.recorder.DropAll(); err != nil {
		t.Fatal(err)
	}
	follower := heap() - before + int64(ring-d.recorder.Memory())
	if n := d.machine.Waiting(); n < waiters-1 {
		t.Fatalf("%d wait", n)
	}
	t.Logf("the ring took %d bytes, the follower takes %d for each waiter", ring, follower/waiters)
	if ring > 1<<20+1<<20 || follower > waiters*1536 {
		t.Errorf("the ring took %d bytes, and the follower takes %d", ring, follower)
	}
	runtime.KeepAlive(d)
}
