package integration

import (
	"fmt"

	"github.com/weir-epp/weir/internal/expect"
)

// The permitted growth of an idle Weir since its warm-up.
const (
	heapGrowth      = 8 << 20
	goroutineGrowth = 12 // a few more connections, each with two or three
	mostMemory      = 256 << 20
)

// resources are epp's after a garbage collection.
type resources struct {
	heap, goroutines float64
	streams          int // so far
}

// resources collects epp's garbage and measures it. It needs --enable-pprof, the only way to request a collection from
// outside.
func (e *epp) resources() resources {
	e.t.Helper()
	expect.Page(e.t, e.DebugURL+"/debug/pprof/heap?gc=1")
	return resources{
		heap:       e.value("go_memstats_heap_alloc_bytes"),
		goroutines: e.value("go_goroutines"),
		streams:    int(e.value("weir_extproc_streams_total")),
	}
}

// unburdened waits until heap and goroutines are back at base, and checks that there was no panic and that memory was
// bounded meanwhile.
func (e *epp) unburdened(base resources) {
	e.t.Helper()
	expect.Eventually(e.t, "memory and goroutines are back", func() error {
		now := e.resources()
		if now.heap > base.heap+heapGrowth || now.goroutines > base.goroutines+goroutineGrowth {
			return fmt.Errorf("heap %.0f, was %.0f; goroutines %.0f, were %.0f",
				now.heap, base.heap, now.goroutines, base.goroutines)
		}
		return nil
	})
	if n := e.value("weir_extproc_panics_total"); n != 0 {
		e.t.Errorf("%v panics", n)
	}
	// Resident memory hardly ever falls, so this checks its maximum.
	if n := e.value("process_resident_memory_bytes"); n > mostMemory {
		e.t.Errorf("epp has %.0f MB, want at most %d", n/(1<<20), mostMemory>>20)
	}
}
