package shown

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Duration formats a duration with three significant digits and a suitable unit: 850 µs, 12.3 ms, 213 ms, 2.87 s.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	case d < time.Second-500*time.Microsecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	case d < 100*time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}

// plain has columns with two blanks between them, rules of dashes, and no frame.
var plain = table.Style{
	Box:     table.BoxStyle{MiddleVertical: "  ", MiddleHorizontal: "─", MiddleSeparator: "  "},
	Options: table.Options{SeparateColumns: true, SeparateHeader: true},
}

// Table returns a table with this header. The columns from the firstNumber-th on, counted from 1, have numbers.
func Table(header table.Row, firstNumber int) table.Writer {
	t := table.NewWriter()
	t.SetStyle(plain)
	t.SuppressTrailingSpaces()
	t.AppendHeader(header)
	var numbers []table.ColumnConfig
	for column := firstNumber; column <= len(header); column++ {
		numbers = append(numbers, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(numbers)
	return t
}
