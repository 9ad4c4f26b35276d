// Command benchratios copies the output of `go test -bench` from its standard input to its standard output. Then it
// prints a table for each benchmark with sub-benchmarks: the medians, and their ratios to the first row.
//
//	go test -run '^$' -bench . -benchmem -count 5 ./pkg/... | go run ./hack/benchratios
//
// The median is that of the runs of a benchmark (-count).
package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/perf/benchfmt"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchratios:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	benchmarks, err := read(io.TeeReader(in, out))
	if err != nil {
		return err
	}
	for _, b := range benchmarks {
		if len(b.rows) > 1 {
			if _, err := fmt.Fprintf(out, "\n%s\n", b.table()); err != nil {
				return err
			}
		}
	}
	return nil
}

// benchmark is a benchmark of one package, with its rows in the order in which they ran.
type benchmark struct {
	name string // package and benchmark
	rows []*row
}

// row is a sub-benchmark. Each list has one value for each run.
type row struct {
	name                   string
	seconds, bytes, allocs []float64 // per operation; the last two are empty without -benchmem
}

// read returns the benchmarks in the order in which they ran.
func read(in io.Reader) ([]*benchmark, error) {
	var all []*benchmark
	reader := benchfmt.NewReader(in, "the benchmarks' output")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		base, parts := result.Name.Parts()
		name := path.Base(result.GetConfig("pkg")) + " " + string(base)
		i := slices.IndexFunc(all, func(b *benchmark) bool { return b.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, &benchmark{name: name})
		}
		var rest strings.Builder
		for _, part := range parts {
			if part[0] != '-' { // GOMAXPROCS
				rest.Write(part)
			}
		}
		r := all[i].row(strings.TrimPrefix(rest.String(), "/"))
		for unit, values := range map[string]*[]float64{"sec/op": &r.seconds, "B/op": &r.bytes, "allocs/op": &r.allocs} {
			if value, ok := result.Value(unit); ok {
				*values = append(*values, value)
			}
		}
	}
	return all, reader.Err()
}

// row returns the row with this name, and adds it if it is new.
func (b *benchmark) row(name string) *row {
	i := slices.IndexFunc(b.rows, func(r *row) bool { return r.name == name })
	if i < 0 {
		i = len(b.rows)
		b.rows = append(b.rows, &row{name: name})
	}
	return b.rows[i]
}

// table prints the rows with their ratios to the first.
func (b *benchmark) table() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{b.name, "runs", "time/op", "ratio", "B/op", "allocs/op"})
	var columns []table.ColumnConfig
	for number := 2; number <= 6; number++ {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	first := median(b.rows[0].seconds)
	for _, r := range b.rows {
		seconds := median(r.seconds)
		t.AppendRow(table.Row{
			r.name, len(r.seconds), time.Duration(seconds * float64(time.Second)), fmt.Sprintf("%.2f", seconds/first),
			fmt.Sprintf("%.0f", median(r.bytes)), fmt.Sprintf("%.0f", median(r.allocs)),
		})
	}
	return t.Render()
}

// median returns the median, the lower of the middle two if their number is even, or 0 without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
