package loadgen

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// latencyAxis is a logarithmic axis of durations, since ratios of latencies matter more than differences.
type latencyAxis struct {
	low, high time.Duration // both are ticks
}

// newLatencyAxis returns an axis from low to high, extended to ticks and to at least a factor of ten.
func newLatencyAxis(low, high time.Duration) latencyAxis {
	low = max(low, time.Microsecond)
	high = max(high, low)
	for high < 10*low {
		low, high = max(low*4/5, time.Microsecond), high*5/4
	}
	axis := latencyAxis{low: time.Microsecond, high: time.Microsecond}
	for tick, i := time.Microsecond, 0; ; tick, i = nextTick(tick, i) {
		if tick <= low {
			axis.low = tick
		}
		if tick >= high {
			axis.high = tick
			return axis
		}
	}
}

// nextTick returns the tick after tick in steps of 1, 2, 5, 10, and its number; i is the number of tick.
func nextTick(tick time.Duration, i int) (next time.Duration, number int) {
	if i%3 == 1 {
		return tick / 2 * 5, i + 1
	}
	return tick * 2, i + 1
}

// ticks returns ticks in steps of 1, 2, 5 for up to three decades, of ten beyond.
func (a latencyAxis) ticks() []time.Duration {
	var ticks []time.Duration
	for tick, i := time.Microsecond, 0; tick <= a.high; tick, i = nextTick(tick, i) {
		if tick >= a.low && (a.high <= 1000*a.low || i%3 == 0) {
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// place returns a duration's position, from 0 at low to 1 at high, clamped to that range.
func (a latencyAxis) place(d time.Duration) float64 {
	part := math.Log(float64(max(d, 1))/float64(a.low)) / math.Log(float64(a.high)/float64(a.low))
	return min(max(part, 0), 1)
}

// latencyTickStyle is the style of the labels left of the axis.
func latencyTickStyle() draw.TextStyle {
	return textStyle(9.5, false, greyColour, draw.XRight, draw.YCenter)
}

// width returns the width of the labels and the axis title.
func (a latencyAxis) width() vg.Length {
	var widest vg.Length
	for _, tick := range a.ticks() {
		widest = max(widest, latencyTickStyle().Width(durationText(tick)))
	}
	return widest + 28
}

// timeStep returns the distance between ticks of the time axis: about five ticks, in steps of 1, 2, 5.
func timeStep(length time.Duration) time.Duration {
	step := time.Millisecond
	for i := 0; 6*step < length; step, i = nextTick(step, i) {
		continue
	}
	return step
}

// secondsText returns the label of a tick of the time axis, without the unit.
func secondsText(d time.Duration) string { return fmt.Sprintf("%g", d.Seconds()) }
