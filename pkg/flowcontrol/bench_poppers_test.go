package flowcontrol

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPoppers is BenchmarkStreams with other numbers of poppers, which are parked while streams release each other
// (ADR 0012). On a shared machine processor time is more reliable than time.
func BenchmarkPoppers(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("poppers=%d", n), func(b *testing.B) {
			c := benchController(b, func(c *Config) { c.NumPoppers = n })
			before := processorTime(b)
			backlogged(b, c, 100, 1, 5000)
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "processor-ns/op")
		})
	}
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
