package app

import (
	"os"
	"runtime/debug"

	"github.com/weir-epp/weir/internal/config"
)

// The live heap of a proxy's processor is a few megabytes, so with Go's default the collector runs many times a second
// for nothing: a fifth of the processor's CPU under load. It is let run rarer, and a soft limit takes its place when
// bodies fill the memory. The environment's GOGC and GOMEMLIMIT win.
const (
	collectPercent = 400
	memoryBase     = 512 << 20 // bytes, beside the bodies
)

// tuneMemory sets the collector of the whole process.
func tuneMemory(limits config.Limits) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		// A body may be held twice: as it came in and as it goes out.
		debug.SetMemoryLimit(2*limits.MaxBodyBytesTotal + memoryBase)
	}
}
