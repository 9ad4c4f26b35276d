package main

import (
	"strings"
	"testing"
)

const output = `goos: linux
pkg: example.org/weir/pkg/queue
BenchmarkPick/endpoints=10-2         	 100	      1000 ns/op	       0 B/op	       0 allocs/op
BenchmarkPick/endpoints=10-2         	 100	      9000 ns/op	       0 B/op	       0 allocs/op
BenchmarkPick/endpoints=10-2         	 100	      2000 ns/op	       0 B/op	       0 allocs/op
BenchmarkPick/endpoints=2000/flows=3-2	 100	      7000 ns/op	      64 B/op	       2 allocs/op
BenchmarkPick/endpoints=2000/flows=3-2	 100	      4000 ns/op	      64 B/op	       2 allocs/op
BenchmarkPick/endpoints=2000/flows=3-2	 100	      5000 ns/op	      64 B/op	       2 allocs/op
BenchmarkAlone-2                      	 100	      5000 ns/op
PASS
ok  	example.org/weir/pkg/queue	1.3s
pkg: example.org/weir/pkg/stock
BenchmarkPick/a-2                     	 100	       300 ns/op
BenchmarkPick/b-2                     	 100	       150 ns/op
`

// The input is copied unchanged. Each benchmark with rows gets a table of the medians over its runs, with ratios to the
// first row. Packages are kept apart.
func TestRatios(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader(output), &out); err != nil {
		t.Fatal(err)
	}
	tables, found := strings.CutPrefix(out.String(), output)
	if !found {
		t.Fatalf("the input is not passed on:\n%s", out.String())
	}
	var lines []string
	for line := range strings.Lines(tables) {
		if strings.HasPrefix(line, "│") {
			lines = append(lines, strings.Join(strings.Fields(strings.ReplaceAll(line, "│", " ")), " "))
		}
	}
	want := []string{
		"queue Pick runs time/op ratio B/op allocs/op",
		"endpoints=10 3 2µs 1.00 0 0",
		"endpoints=2000/flows=3 3 5µs 2.50 64 2",
		"stock Pick runs time/op ratio B/op allocs/op",
		"a 1 300ns 1.00 0 0",
		"b 1 150ns 0.50 0 0",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("tables are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
