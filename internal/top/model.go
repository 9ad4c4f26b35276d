package top

import (
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-epp/weir/internal/status"
)

// Options are the program's fixed options.
type Options struct {
	// Addresses are the replicas' debug ports.
	Addresses []string
	// Every is the time from an answer to the next request.
	Every time.Duration
	// Patience is the time for which the program continues without any answer.
	Patience time.Duration
	// Colour is false for a terminal without colours (NO_COLOR).
	Colour bool
	// Read asks all replicas. It is called in a goroutine of its own, one call at a time.
	Read func(q *status.Query) []status.Answer
}

// table is one of the two tables with a cursor.
type table int

// The tables.
const (
	flows table = iota
	engines
)

// Model is the state of the screen. Make one with New.
type Model struct {
	options       Options
	query         status.Query
	width, height int

	replicas []replica
	shown    int // the replica on the screen
	failing  time.Time
	err      error

	question int  // number of the newest request: answers to earlier ones are not shown
	asking   bool // a request is in progress
	focus    table
	cursor   [2]string // the name of the row under the cursor, by table
	typing   bool      // a filter is typed
	typed    string
	detail   string // the flow whose detail is shown; "": none
}

// replica is the known state of one replica.
type replica struct {
	document *status.Document // the last one; nil: it has never answered
	err      error            // the error of the last request
}

// answered is the message with the answers to a request.
type answered struct {
	question int
	at       time.Time
	answers  []status.Answer
}

// due is the message that the next request is due.
type due struct{ question int }

// New returns a Model with these answers to the query.
func New(o Options, q status.Query, first []status.Answer) Model {
	m := Model{options: o, query: q, width: 80, height: 24, replicas: make([]replica, len(o.Addresses)), asking: true}
	m.take(&answered{answers: first})
	for i, r := range m.replicas {
		if r.document != nil && r.document.Pool.Leads {
			m.shown = i
			break
		}
	}
	return m
}

// Err returns the reason why the program has ended by itself; nil if the user has ended it.
func (m Model) Err() error { return m.err }

// Init sends the first request.
func (m Model) Init() tea.Cmd { return m.ask() }

// View returns the frame.
func (m Model) View() tea.View {
	v := tea.NewView(m.Frame())
	v.AltScreen = true
	return v
}

// Update changes the model by a message.
func (m Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case answered:
		if message.question != m.question {
			return m, m.ask() // the newest request had to wait
		}
		m.asking = false
		if m.take(&message); m.err != nil {
			return m, tea.Quit
		}
		question := m.question
		return m, tea.Tick(m.options.Every, func(time.Time) tea.Msg { return due{question} })
	case due:
		if message.question == m.question {
			return m.next()
		}
	case tea.KeyPressMsg:
		return m.press(message)
	}
	return m, nil
}

// next makes a new request, so that an answer to an earlier one is no longer shown. One request is sent at a time.
func (m Model) next() (tea.Model, tea.Cmd) {
	m.question++
	if m.asking {
		return m, nil
	}
	m.asking = true
	return m, m.ask()
}

// ask returns the command for the newest request.
func (m Model) ask() tea.Cmd {
	q, question, read := m.query, m.question, m.options.Read
	if q.Only = m.detail; q.Only != "" {
		q.Flow = ""
	}
	return func() tea.Msg {
		answers := read(&q)
		return answered{question: question, at: time.Now(), answers: answers}
	}
}

// take stores answers.
func (m *Model) take(a *answered) {
	m.replicas = slices.Clone(m.replicas)
	reached := false
	for i, one := range a.answers {
		m.replicas[i].err = one.Err
		if one.Document != nil {
			m.replicas[i].document = one.Document
			reached = true
		}
	}
	switch {
	case reached:
		m.failing = time.Time{}
	case m.failing.IsZero():
		m.failing = a.at
	case a.at.Sub(m.failing) >= m.options.Patience:
		m.err = fmt.Errorf("no answer for %v: %w", a.at.Sub(m.failing).Round(time.Second), errors.Join(errorsOf(a.answers)...))
	}
}

func errorsOf(answers []status.Answer) (errs []error) {
	for _, a := range answers {
		if a.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a.Address, a.Err))
		}
	}
	return errs
}
