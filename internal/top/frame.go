package top

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/weir-epp/weir/internal/status"
)

// The styles, as SGR parameters.
const (
	plain   = ""
	bold    = "1"
	reverse = "7"
	red     = "1;31"
	green   = "32"
	dim     = "2"
)

// screen is a frame under construction, line by line.
type screen struct {
	width, height int
	colour        bool
	lines         []string
}

// add adds a line, cut to the width.
func (s *screen) add(style, text string) {
	text = strings.TrimRight(ansi.Truncate(text, s.width, "…"), " ")
	if s.colour && style != plain && text != "" {
		text = "\x1b[" + style + "m" + text + "\x1b[m"
	}
	s.lines = append(s.lines, text)
}

// left returns the number of free lines above the last one.
func (s *screen) left() int { return s.height - 1 - len(s.lines) }

// Frame returns the screen's lines, filling its height.
func (m Model) Frame() string {
	s := &screen{width: m.width, height: m.height, colour: m.options.Colour}
	r := &m.replicas[m.shown]
	m.title(s)
	if r.err != nil {
		s.add(red, "no answer: "+status.Plain(r.err.Error()))
	}
	if d := r.document; d != nil {
		for _, reason := range d.Reasons[:min(len(d.Reasons), max(1, m.height/12))] {
			s.add(red, reason.ID+": "+status.Plain(reason.Text))
		}
		for i := range d.Notes[:min(len(d.Notes), max(1, m.height/12))] {
			s.add(plain, d.Notes[i].Line())
		}
		if m.detail != "" {
			m.details(s, d)
		} else {
			m.tables(s, d)
		}
	}
	if len(s.lines) >= m.height {
		s.lines = s.lines[:max(0, m.height-1)]
	}
	for s.left() > 0 {
		s.lines = append(s.lines, "")
	}
	m.footer(s)
	return strings.Join(s.lines[:min(len(s.lines), m.height)], "\n")
}

// title adds the first line: the replica, its verdict and the time of its document.
func (m *Model) title(s *screen) {
	r := &m.replicas[m.shown]
	text := "weir top  " + m.options.Addresses[m.shown]
	if n := len(m.replicas); n > 1 {
		text += fmt.Sprintf(" (replica %d of %d)", m.shown+1, n)
	}
	style := green
	switch d := r.document; {
	case d == nil:
		style, text = red, text+"  UNREACHABLE"
	case r.err != nil:
		style, text = red, text+"  UNREACHABLE since "+d.At.UTC().Format("15:04:05")+" UTC"
	case d.Healthy:
		text += "  healthy  " + d.At.UTC().Format("15:04:05") + " UTC"
	default:
		style, text = red, text+"  DEGRADED  "+d.At.UTC().Format("15:04:05")+" UTC"
	}
	s.add(style, text)
}

// tables adds the overview: the pool, and the rows of each table that fit.
func (m *Model) tables(s *screen, d *status.Document) {
	for _, line := range d.Lines() {
		s.add(plain, fmt.Sprintf("%-9s %s", line[0], line[1]))
	}
	rated := d.WindowSeconds > 0
	s.table(status.TierColumns, rows(d.Tiers, (*status.Tier).Cells), max(1, s.left()/5), -1)
	rejected := d.RejectionRows()
	rejections := min(len(rejected), max(s.left()/6, s.left()-len(d.Engines)-len(d.Flows)-3))
	if rejections > 0 {
		rejections++ // the columns
	}
	all := s.left() - rejections - 2 // the heads of both tables
	of := min(len(d.Engines), max(all/3, all-len(d.Flows)))
	s.table(status.EngineColumns, rows(d.Engines, func(e *status.Engine) []string { return e.Cells(rated) }), of, m.row(engines))
	s.table(status.FlowColumns, rows(d.Flows, func(f *status.Flow) []string { return f.Cells(rated) }), all-of, m.row(flows))
	if rejections > 0 {
		s.rejections(rejected, rejections-1)
	}
}

// note describes the order and the filter of the table with the cursor.
func (m *Model) note() string {
	d := m.replicas[m.shown].document
	if d == nil {
		return ""
	}
	text, filter, left := "flows by "+m.query.SortFlows, m.query.Flow, d.LeftOut.Flows
	if m.focus == engines {
		text, filter, left = "engines by "+m.query.SortEngines, m.query.Engine, d.LeftOut.Engines
	}
	if filter != "" {
		text += ", with " + fmt.Sprintf("%q", filter)
	}
	if left > 0 {
		text += fmt.Sprintf(", %d more", left)
	}
	return text + "  "
}

// row returns the row of a table under the cursor, or -1.
func (m *Model) row(of table) int {
	if of != m.focus {
		return -1
	}
	d, at := m.replicas[m.shown].document, m.at()
	if of == engines {
		for i := range d.Engines {
			if d.Engines[i].Address == at {
				return i
			}
		}
		return -1
	}
	for i := range d.Flows {
		if d.Flows[i].Flow == at {
			return i
		}
	}
	return -1
}

func rows[R any](all []R, cells func(*R) []string) [][]string {
	lines := make([][]string, len(all))
	for i := range all {
		lines[i] = cells(&all[i])
	}
	return lines
}

// details adds all facts about one flow.
func (m *Model) details(s *screen, d *status.Document) {
	s.add(bold, "flow "+status.Plain(m.detail))
	if len(d.Flows) == 0 {
		s.add(plain, "nothing waits, and nothing is in flight")
	}
	for i := range d.Flows {
		f := &d.Flows[i]
		if f.Flow != m.detail {
			continue // a row of the overview
		}
		cells := f.Cells(d.WindowSeconds > 0)
		s.add(plain, "")
		for c := 1; c < len(cells); c++ {
			s.add(plain, fmt.Sprintf("  %-12s %s", status.FlowColumns[c], cells[c]))
		}
		for _, more := range [][2]string{
			{"class", f.Class}, {"weight", fmt.Sprintf("%g", f.Weight)}, {"waiting cost", fmt.Sprint(f.WaitingCost)},
		} {
			if more[1] != "" && more[1] != "0" {
				s.add(plain, fmt.Sprintf("  %-12s %s", more[0], status.Plain(more[1])))
			}
		}
	}
	s.add(plain, "")
	if len(d.Rejections) > 0 {
		s.rejections(d.RejectionRows(), s.left()-1)
	}
}

// footer adds the last line: the filter being typed, or the keys.
func (m *Model) footer(s *screen) {
	switch {
	case m.typing:
		s.add(bold, "filter: "+status.Plain(m.typed)+"_   enter take it  esc leave it")
	case m.detail != "":
		s.add(dim, "esc back  q quit")
	default:
		keys := "q quit  tab table  j k move  enter flow  s sort  / filter"
		if len(m.replicas) > 1 {
			keys += "  r replica"
		}
		s.add(dim, m.note()+keys)
	}
}
