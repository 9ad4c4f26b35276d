package loadgen

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The figure of two runs is a picture, PNG or SVG by the file's ending, with the given texts. Other endings are errors
// and leave no file.
func TestFigureIsSaved(t *testing.T) {
	dir := t.TempDir()
	saved := func(name string) []byte {
		t.Helper()
		if err := syntheticFigure().Save(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	picture, err := png.Decode(bytes.NewReader(saved("figure.png")))
	if err != nil || picture.Bounds().Dx() < 500 {
		t.Errorf("%v, %v", picture.Bounds(), err)
	}
	svg := string(saved("figure.svg"))
	if !strings.Contains(svg, "<svg") || !strings.Contains(svg, "</svg>") {
		t.Errorf("no SVG: %.200s", svg)
	}
	if err := syntheticFigure().Save(filepath.Join(dir, "figure.txt")); err == nil {
		t.Error("a figure is saved as text")
	}
	if _, err := os.Stat(filepath.Join(dir, "figure.txt")); err == nil {
		t.Error("it left a file")
	}
}

// Every input gives a figure: nothing, one answer, answers of no time at all, only rejections, years.
func TestFigureOfAnything(t *testing.T) {
	const year = 365 * 24 * time.Hour
	result := func(status int, start, ttft time.Duration) Result {
		return Result{Tenant: "t", Attempts: 1, Status: status, Start: start, FirstData: ttft, Total: ttft}
	}
	for name, report := range map[string]*Report{
		"nothing":         {},
		"no answers":      {Length: time.Second, Tracks: []Track{{Tenant: "t"}}},
		"one":             {Length: time.Second, Tracks: []Track{{Tenant: "t", Results: []Result{result(200, 0, time.Millisecond)}}}},
		"no time":         {Length: time.Second, Tracks: []Track{{Tenant: "t", Results: []Result{result(200, 0, 0)}}}},
		"rejections only": {Length: time.Second, Tracks: []Track{{Tenant: "t", Results: []Result{result(503, 0, 0)}}}},
		"years":           {Length: year, Tracks: []Track{{Tenant: "t", Results: []Result{result(200, 0, 1), result(200, year, year)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			figure := Figure{Panels: []Panel{{Report: report}, {Report: report}}, Spans: []Span{{To: 2 * time.Second}}}
			var svg strings.Builder
			if err := figure.Write(&svg, "svg"); err != nil || !strings.Contains(svg.String(), "</svg>") {
				t.Errorf("%v, %d bytes", err, svg.Len())
			}
		})
	}
}

// Ticks are at 1, 2 and 5 of each decade, or at whole decades if there are many. The ends are ticks, at least ten times
// apart.
func TestLatencyAxis(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		low, high time.Duration
		want      string
	}{
		{120 * ms, 3300 * ms, "100 ms 200 ms 500 ms 1 s 2 s 5 s"},
		{100 * ms, 1000 * ms, "100 ms 200 ms 500 ms 1 s"},
		{3 * ms, 3 * ms, "500 µs 1 ms 2 ms 5 ms 10 ms 20 ms"},
		{0, 0, "1 µs 2 µs 5 µs 10 µs 20 µs"},
		{11 * time.Microsecond, 40 * time.Second, "10 µs 100 µs 1 ms 10 ms 100 ms 1 s 10 s"},
	} {
		axis := newLatencyAxis(test.low, test.high)
		var labels []string
		for _, tick := range axis.Ticks(0, 0) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != test.want {
			t.Errorf("%v to %v: %s, want %s", test.low, test.high, got, test.want)
		}
	}
}
