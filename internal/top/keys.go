package top

import (
	"slices"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-epp/weir/internal/status"
)

// longestFilter bounds a filter, in bytes.
const longestFilter = 200

// press reacts to a key.
func (m Model) press(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	if key.String() == "ctrl+c" {
		return m, tea.Quit
	}
	if m.typing {
		return m.typeFilter(key)
	}
	switch key.String() {
	case "q":
		return m, tea.Quit
	case "esc":
		return m.back()
	case "tab":
		m.focus = 1 - m.focus
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-10)
	case "pgdown":
		m.move(10)
	case "enter":
		if m.focus == flows && m.detail == "" {
			if m.detail = m.at(); m.detail != "" {
				return m.next()
			}
		}
	case "s":
		if m.focus == flows {
			m.query.SortFlows = after(status.FlowOrders, m.query.SortFlows)
		} else {
			m.query.SortEngines = after(status.EngineOrders, m.query.SortEngines)
		}
		return m.next()
	case "/":
		m.typing, m.typed = true, *m.filter()
	case "r":
		m.shown = (m.shown + 1) % len(m.replicas)
	}
	return m, nil
}

// typeFilter reacts to a key while a filter is being typed.
func (m Model) typeFilter(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch key.String() {
	case "enter":
		m.typing = false
		*m.filter() = m.typed
		return m.next()
	case "esc":
		m.typing = false
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.typed)
		m.typed = m.typed[:len(m.typed)-n]
	default:
		if len(m.typed)+len(key.Text) <= longestFilter {
			m.typed += key.Text
		}
	}
	return m, nil
}

// back leaves the details of a flow, or clears the filter of the table.
func (m Model) back() (tea.Model, tea.Cmd) {
	switch filter := m.filter(); {
	case m.detail != "":
		m.detail = ""
	case *filter != "":
		*filter = ""
	default:
		return m, nil
	}
	return m.next()
}

// filter returns the filter of the table with the cursor.
func (m *Model) filter() *string {
	if m.focus == flows {
		return &m.query.Flow
	}
	return &m.query.Engine
}

// names returns the names of the rows of the table with the cursor; a flow of several tiers has one.
func (m *Model) names() (names []string) {
	d := m.replicas[m.shown].document
	if d == nil {
		return nil
	}
	if m.focus == engines {
		for i := range d.Engines {
			names = append(names, d.Engines[i].Address)
		}
		return names
	}
	for i := range d.Flows {
		if name := d.Flows[i].Flow; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// at returns the name of the row under the cursor: the first row's, if the cursor's row has gone; "" without rows.
func (m *Model) at() string {
	names := m.names()
	if slices.Contains(names, m.cursor[m.focus]) {
		return m.cursor[m.focus]
	}
	if len(names) > 0 {
		return names[0]
	}
	return ""
}

// move moves the cursor by by rows.
func (m *Model) move(by int) {
	if names := m.names(); len(names) > 0 {
		m.cursor[m.focus] = names[min(max(0, slices.Index(names, m.at())+by), len(names)-1)]
	}
}

// after returns the order after this one.
func after(orders []string, order string) string {
	return orders[(slices.Index(orders, order)+1)%len(orders)]
}
