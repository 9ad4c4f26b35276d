package app

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/weir-epp/weir/internal/config"
)

// epp's live heap is a few megabytes, so with Go's default the garbage collector runs many times a second in vain, and
// takes a fifth of the CPU under load. So it runs less often, and a soft memory limit bounds the memory when bodies
// fill it: the limit from the configuration or, if less, one below the container's. GOGC and GOMEMLIMIT in the
// environment take precedence.
const (
	// CollectPercent is the collector's percentage, as in GOGC.
	CollectPercent  = 400
	memoryBase      = 512 << 20 // bytes, beside the bodies
	containerFilled = 0.9       // part of the container's limit, which also counts memory unknown to the collector
)

// tuneMemory sets the garbage collector of the whole process.
func tuneMemory(d config.Document) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(CollectPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		container, err := memlimit.FromCgroup()
		if err != nil {
			container = 0 // none, or not Linux
		}
		debug.SetMemoryLimit(softLimit(d.Limits.MaxBodyBytesTotal, d.Recording<<20, container))
	}
}

// softLimit returns the collector's limit in bytes, given the maximum sizes of all bodies and of the recording, and the
// container's limit; 0: none.
func softLimit(bodies, record int64, container uint64) int64 {
	// A body may be held twice, incoming and outgoing. So may the recording, which may exceed its limit by a quarter.
	own := 2*bodies + 2*(record+record/4) + memoryBase
	if below := containerFilled * float64(container); container > 0 && below < float64(own) {
		return int64(below)
	}
	return own
}
