package loadgen

import (
	"time"

	"gonum.org/v1/plot"

	"github.com/weir-epp/weir/internal/shown"
)

// latencyAxis is a logarithmic axis of durations, in seconds, since ratios of latencies matter more than differences. It
// implements plot.Ticker.
type latencyAxis struct {
	low, high time.Duration // both are steps
	label     string        // of the axis; if empty, ticks have no labels either
}

// newLatencyAxis returns an axis from low to high, extended to steps and to at least a factor of ten.
func newLatencyAxis(low, high time.Duration) latencyAxis {
	low = max(low, time.Microsecond)
	high = max(high, low)
	for high < 10*low {
		low, high = max(low*4/5, time.Microsecond), high*5/4
	}
	axis := latencyAxis{label: "time to first token (log scale)"}
	for step := range steps {
		if step <= low {
			axis.low = step
		}
		if step >= high {
			axis.high = step
			break
		}
	}
	return axis
}

// steps yields 1, 2, 5, 10, 20, 50 µs and so on, up to years.
func steps(yield func(time.Duration) bool) {
	for decade := time.Microsecond; decade < 1e9*time.Second; decade *= 10 {
		if !yield(decade) || !yield(2*decade) || !yield(5*decade) {
			return
		}
	}
}

// Ticks returns a tick for each step, or for each decade if there are more than three.
func (a latencyAxis) Ticks(_, _ float64) []plot.Tick {
	var ticks []plot.Tick
	number := 0
	for step := range steps {
		if step > a.high {
			break
		}
		if step >= a.low && (a.high <= 1000*a.low || number%3 == 0) {
			label := " " // a tick without a label is a minor one, which has no grid line
			if a.label != "" {
				label = shown.Duration(step)
			}
			ticks = append(ticks, plot.Tick{Value: step.Seconds(), Label: label})
		}
		number++
	}
	return ticks
}
