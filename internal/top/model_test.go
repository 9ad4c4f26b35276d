package top

import (
	"errors"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-epp/weir/internal/status"
)

// asked presses keys, and returns the queries after each.
func asked(t *testing.T, keys ...string) (m tea.Model, last status.Query, n int) {
	t.Helper()
	answer := status.Answer{Document: pool()}
	o := Options{Addresses: []string{"a:1"}, Every: time.Hour, Patience: time.Second, Read: func(q *status.Query) []status.Answer {
		last = *q
		n++
		return []status.Answer{answer}
	}}
	m = New(o, status.DefaultQuery(), []status.Answer{answer})
	m, _ = m.Update(m.Init()())
	n = 0
	for _, key := range keys {
		var c tea.Cmd
		if m, c = m.Update(press(key)); c != nil {
			m, _ = m.Update(c())
		}
	}
	return m, last, n
}

// Keys sort, filter and open a flow. Each change sends a new query at once.
func TestKeysAsk(t *testing.T) {
	for _, test := range []struct {
		keys []string
		want func(*status.Query)
		n    int
	}{
		{[]string{"s"}, func(q *status.Query) { q.SortFlows = "since" }, 1},
		{[]string{"tab", "s", "s"}, func(q *status.Query) { q.SortEngines = "fill" }, 2},
		{[]string{"/", "a", "q", "enter"}, func(q *status.Query) { q.Flow = "aq" }, 1},
		{[]string{"/", "a", "enter", "/", "esc", "esc"}, func(*status.Query) {}, 2},
		{[]string{"tab", "/", "1", "enter"}, func(q *status.Query) { q.Engine = "1" }, 1},
		{[]string{"j", "enter"}, func(q *status.Query) { q.Only = "team-01" }, 1},
		{[]string{"j", "j", "k", "enter", "esc"}, func(*status.Query) {}, 2},
		{[]string{"/", "t", "enter", "enter"}, func(q *status.Query) { q.Only = "crawler-with-a-long-name@example.com" }, 2},
	} {
		want := status.DefaultQuery()
		test.want(&want)
		if _, got, n := asked(t, test.keys...); got != want || n != test.n {
			t.Errorf("%v: asks %d times, at last for %+v", test.keys, n, got)
		}
	}
}

// q and ^C end the program. ^C also does while a filter is typed, where q is a letter.
func TestKeysQuit(t *testing.T) {
	for _, test := range []struct {
		keys []string
		want bool
	}{{[]string{"q"}, true}, {[]string{"ctrl+c"}, true}, {[]string{"/", "ctrl+c"}, true}, {[]string{"/", "q"}, false}, {[]string{"enter", "q"}, true}} {
		m := screenOf(t, 80, 24, false, status.Answer{Document: pool()})
		var c tea.Cmd
		for _, key := range test.keys {
			m, c = m.Update(press(key))
		}
		quits := false
		if c != nil {
			_, quits = c().(tea.QuitMsg)
		}
		if quits != test.want {
			t.Errorf("%v: quits is %t", test.keys, quits)
		}
	}
}

// There is one query at a time. A later one waits for its turn, and the answer to the earlier one is not shown.
func TestOneQuestionAtATime(t *testing.T) {
	first, second := pool(), pool()
	first.Pool.Waiting, second.Pool.Waiting = 111, 222
	m := screenOf(t, 80, 24, false, status.Answer{Document: pool()}) // which sends a query
	m, c := m.Update(press("s"))
	if c != nil {
		t.Fatal("a second question")
	}
	m, c = m.Update(answered{question: 0, answers: []status.Answer{{Document: first}}})
	if c == nil || m.(Model).replicas[0].document == first {
		t.Fatal("the second question is not asked, or the first answered")
	}
	m, _ = m.Update(answered{question: 1, answers: []status.Answer{{Document: second}}})
	if m.(Model).replicas[0].document != second {
		t.Error("the second answer is not shown")
	}
	if m, c = m.Update(due{0}); c != nil {
		t.Error("a question that was due before the last one is asked")
	}
	if _, c = m.Update(due{1}); c == nil {
		t.Error("no question is asked when it is due")
	}
}

// A replica without answers for a while stays on the screen. If all are lost for the patience, the program ends with
// the reason.
func TestLostConnection(t *testing.T) {
	gone, there := status.Answer{Address: "a:1", Err: errors.New("refused")}, status.Answer{Document: pool()}
	at := pool().At
	m := screenOf(t, 80, 24, false, there)
	take := func(after time.Duration, a status.Answer) (quits bool) {
		t.Helper()
		question := m.(Model).question
		next, c := m.Update(answered{question: question, at: at.Add(after), answers: []status.Answer{a}})
		m, _ = next.Update(due{question})
		if c == nil {
			t.Fatal("nothing follows")
		}
		return m.(Model).Err() != nil
	}
	for _, after := range []time.Duration{0, 9 * time.Second} {
		if take(after, gone) {
			t.Fatalf("it ends after %v", after)
		}
	}
	if take(11*time.Second, there) || take(12*time.Second, gone) || take(21*time.Second, gone) {
		t.Fatal("it ends, though an answer came")
	}
	if !take(22*time.Second, gone) {
		t.Fatal("it does not end")
	}
	if err := m.(Model).Err(); err.Error() != "no answer for 10s: a:1: refused" {
		t.Errorf("got %v", err)
	}
}
