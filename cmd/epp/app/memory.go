package app

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/weir-epp/weir/internal/config"
)

// The live heap of a proxy's processor is a few megabytes, so with Go's default the collector runs many times a second
// for nothing: a fifth of the processor's CPU under load. It is let run rarer, and a soft limit takes its place when
// bodies fill the memory: that of the configuration, or below the container's if that is less. The environment's GOGC
// and GOMEMLIMIT win.
const (
	collectPercent  = 400
	memoryBase      = 512 << 20 // bytes, beside the bodies
	containerFilled = 0.9       // the part of the container's limit, which counts what the collector does not see
)

// tuneMemory sets the collector of the whole process.
func tuneMemory(limits config.Limits) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		container, err := memlimit.FromCgroup()
		if err != nil {
			container = 0 // none, or not Linux
		}
		debug.SetMemoryLimit(softLimit(limits.MaxBodyBytesTotal, container))
	}
}

// softLimit is the collector's limit in bytes for so many bytes of bodies at most, in a container with that limit; 0:
// none.
func softLimit(bodies int64, container uint64) int64 {
	own := 2*bodies + memoryBase // a body may be held twice: as it came in and as it goes out
	if below := containerFilled * float64(container); container > 0 && below < float64(own) {
		return int64(below)
	}
	return own
}
