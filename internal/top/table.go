package top

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/weir-epp/weir/internal/status"
)

// narrow are the columns that may be cut, with their least widths: names are known by their beginnings, and limits begin
// with their name and value.
var narrow = map[string]int{"tier": 12, "engine": 19, "flow": 12, "limit": 24}

// rejectOrder has the limit before the columns that a narrow screen drops.
var rejectOrder = []int{0, 1, 2, 5, 3, 4}

// inOrder returns cells in another order.
func inOrder(cells []string, order []int) (ordered []string) {
	for _, c := range order {
		ordered = append(ordered, cells[c])
	}
	return ordered
}

// rejections adds the table of rejections, with up to most rows.
func (s *screen) rejections(rows [][]string, most int) {
	for i := range rows {
		rows[i] = inOrder(rows[i], rejectOrder)
	}
	s.table(inOrder(status.RejectColumns, rejectOrder), rows, most, -1)
}

// table adds the heads of a table and up to most rows around the cursor, a row or -1.
func (s *screen) table(columns []string, rows [][]string, most, cursor int) {
	from := 0
	if cursor >= most {
		from = cursor - most + 1
	}
	rows = rows[min(from, len(rows)):min(from+max(0, most), len(rows))]
	widths := widthsOf(columns, rows, s.width-2) // for the cursor
	s.add(bold, "  "+strings.ToUpper(line(columns, widths)))
	for i, row := range rows {
		if from+i == cursor {
			s.add(reverse, "> "+line(row, widths))
		} else {
			s.add(plain, "  "+line(row, widths))
		}
	}
}

// widthsOf returns the widths of the columns that fit: the last columns are dropped if the others need their room even when
// they are cut; then those to the left are cut first.
func widthsOf(columns []string, rows [][]string, room int) []int {
	widths, least := make([]int, len(columns)), make([]int, len(columns))
	most, need := -2, -2
	for c := range columns {
		widths[c] = ansi.StringWidth(columns[c])
		for _, row := range rows {
			widths[c] = max(widths[c], ansi.StringWidth(row[c]))
		}
		least[c] = widths[c]
		if n := narrow[columns[c]]; n > 0 {
			least[c] = min(n, widths[c])
		}
		most, need = most+widths[c]+2, need+least[c]+2
	}
	for last := len(widths) - 1; last > 0 && need > room; last-- {
		most, need = most-widths[last]-2, need-least[last]-2
		widths = widths[:last]
	}
	for c := range widths {
		less := max(0, min(most-room, widths[c]-least[c]))
		widths[c] -= less
		most -= less
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
