package top

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// The least widths of a table's first column: for names, distinguishable by their beginnings, and for addresses.
const (
	narrowName    = 12
	narrowAddress = 19
)

// table adds the heads of a table and up to most rows around the cursor, a row or -1. The first column has at least the
// width narrowest, unless the screen is narrower.
func (s *screen) table(columns []string, rows [][]string, most, cursor, narrowest int) {
	from := 0
	if cursor >= most {
		from = cursor - most + 1
	}
	rows = rows[min(from, len(rows)):min(from+max(0, most), len(rows))]
	widths := widthsOf(columns, rows, s.width-2, narrowest) // for the cursor
	s.add(bold, "  "+strings.ToUpper(line(columns, widths)))
	for i, row := range rows {
		if from+i == cursor {
			s.add(reverse, "> "+line(row, widths))
		} else {
			s.add(plain, "  "+line(row, widths))
		}
	}
}

// widthsOf returns the widths of the columns that fit: first the column of names shrinks, then the last columns are
// dropped.
func widthsOf(columns []string, rows [][]string, room, narrowest int) []int {
	widths := make([]int, len(columns))
	sum := 0
	for c := range columns {
		widths[c] = ansi.StringWidth(columns[c])
		for _, row := range rows {
			widths[c] = max(widths[c], ansi.StringWidth(row[c]))
		}
		sum += widths[c] + 2
	}
	if less := min(sum-2-room, widths[0]-narrowest); less > 0 {
		widths[0] -= less
		sum -= less
	}
	for len(widths) > 1 && sum-2 > room {
		sum -= widths[len(widths)-1] + 2
		widths = widths[:len(widths)-1]
	}
	return widths
}

// line returns cells in columns of these widths.
func line(cells []string, widths []int) string {
	var b strings.Builder
	for c, width := range widths {
		cell := ansi.Truncate(cells[c], width, "…")
		b.WriteString(cell)
		if c < len(widths)-1 {
			b.WriteString(strings.Repeat(" ", width-ansi.StringWidth(cell)+2))
		}
	}
	return b.String()
}
