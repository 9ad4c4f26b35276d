package loadgen

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// latencyAxis is a logarithmic axis of durations: what matters about a latency is how many times longer it is.
type latencyAxis struct {
	low, high time.Duration // both are ticks
}

// newLatencyAxis spans low to high and at least a factor of ten, from tick to tick.
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

// nextTick goes on in steps of 1, 2, 5, 10; i is the number of the tick.
func nextTick(tick time.Duration, i int) (next time.Duration, number int) {
	if i%3 == 1 {
		return tick / 2 * 5, i + 1
	}
	return tick * 2, i + 1
}

// ticks are in steps of 1, 2, 5 up to three decades, of ten beyond.
func (a latencyAxis) ticks() []time.Duration {
	var ticks []time.Duration
	for tick, i := time.Microsecond, 0; tick <= a.high; tick, i = nextTick(tick, i) {
		if tick >= a.low && (a.high <= 1000*a.low || i%3 == 0) {
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// place is where a duration stands, 0 at low to 1 at high, and no further.
func (a latencyAxis) place(d time.Duration) float64 {
	part := math.Log(float64(max(d, 1))/float64(a.low)) / math.Log(float64(a.high)/float64(a.low))
	return min(max(part, 0), 1)
}

// latencyTickStyle is of the labels left of the axis.
func latencyTickStyle() draw.TextStyle {
	return textStyle(9.5, false, greyColour, draw.XRight, draw.YCenter)
}

// width is the room that the labels and the axis title take.
func (a latencyAxis) width() vg.Length {
	var widest vg.Length
	for _, tick := range a.ticks() {
		widest = max(widest, latencyTickStyle().Width(durationText(tick)))
	}
	return widest + 28
}

// timeStep is the distance of the time axis's ticks: about five, in steps of 1, 2, 5.
func timeStep(length time.Duration) time.Duration {
	step := time.Millisecond
	for i := 0; 6*step < length; step, i = nextTick(step, i) {
		continue
	}
	return step
}

// secondsText is a tick of the time axis, without the unit.
func secondsText(d time.Duration) string { return fmt.Sprintf("%g", d.Seconds()) }
