package app

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/weir-epp/weir/internal/config"
)

// The live heap of a processor is a few megabytes, so with Go's default the garbage collector runs many times a second
// for nothing, and takes a fifth of the CPU under load. It is made to run less often, and a soft memory limit makes up
// for that when bodies fill the memory: the limit in the configuration or, if less, one below that of the container.
// GOGC and GOMEMLIMIT in the environment take precedence.
const (
	// CollectPercent is the collector's percentage, as in GOGC.
	CollectPercent  = 400
	memoryBase      = 512 << 20 // bytes, beside the bodies
	containerFilled = 0.9       // the part of the container's limit, which also counts memory that the collector does not see
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

// softLimit returns the collector's limit in bytes, given the maximum sizes of all bodies and of the recording, and the limit of the
// container; 0: none.
func softLimit(bodies, record int64, container uint64) int64 {
	// A body may be held twice, as it came in and as it goes out; so may the recording, a quarter of which may be behind.
	own := 2*bodies + 2*(record+record/4) + memoryBase
	if below := containerFilled * float64(container); container > 0 && below < float64(own) {
		return int64(below)
	}
	return own
}
