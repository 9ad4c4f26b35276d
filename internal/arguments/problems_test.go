package arguments

import (
	"math"
	"testing"
	"time"
)

// The problems of values outside their ranges are one error, in the order of the checks; bounds are inside.
func TestWithin(t *testing.T) {
	var ps Problems
	Within(&ps, "low", 1, 1, 5)
	Within(&ps, "high", 5, 1, 5)
	if err := ps.Err(); err != nil {
		t.Errorf("the bounds: %v", err)
	}
	Within(&ps, "count", 6, 1, 5)
	Within(&ps, "time", 0, time.Minute, 24*time.Hour)
	Within(&ps, "share", math.NaN(), 0, 0.5)
	ps.Add("name", "%q: is taken", "x")
	want := "--count: 6: must be from 1 to 5\n--time: 0s: must be from 1m to 24h\n" +
		"--share: NaN: must be from 0 to 0.5\n--name: \"x\": is taken"
	if err := ps.Err(); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
