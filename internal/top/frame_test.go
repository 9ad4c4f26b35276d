package top

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/weir-epp/weir/internal/golden"
	"github.com/weir-epp/weir/internal/status"
)

// pool is the document of a pool with a flooding tenant, a failing engine and a slow one.
func pool() *status.Document {
	at := time.Date(2026, 3, 1, 3, 0, 7, 0, time.UTC)
	d := &status.Document{
		Schema: status.Schema, At: at, Version: "v1", WindowSeconds: 30,
		Reasons: []status.Reason{{ID: "circuits-open", Text: "1 of 8 engines fail and get no requests: 10.0.0.3:8000 (open)"}},
		Pool: status.Pool{
			Name: "chat", Profile: "recommended", Ready: true, Leads: true, Leader: "weir-0", Engines: 8, ReadyEngines: 8, Waiting: 412, WaitingFlows: 30,
			QueueCapacity: 1000, Stock: 61, UpperBound: new(64.), Elsewhere: 3, Requests: 21.5, Rejected: 2.25,
		},
		Tiers: []status.Tier{
			{Name: "critical", Limit: 1000, InFlight: 3},
			{Name: "default", Waiting: 12, Limit: 1000, InFlight: 50, Waits: 100, Median: .8, P90: 4.1, P99: 41, Displaced: 3},
			{Name: "sheddable", Waiting: 400, Limit: 1000, InFlight: 8, Waits: 20, Median: 12, P90: 33, P99: 700, Promotions: 1},
		},
	}
	for i := range 8 {
		e := status.Engine{
			Address: fmt.Sprintf("10.0.0.%d:8000", i+1), Ready: true, InFlight: 8 - i/4, Bound: new(8.), Fill: new(1 - float64(i/4)/8), Answers: 2.6, Circuit: "closed",
			Service: 1.2, Oldest: 3.4, Metrics: &status.EngineMetrics{Running: 8, Cache: .7},
		}
		switch i {
		case 2:
			e.Circuit, e.InFlight, e.Fill, e.Answers, e.Failures = "open", 0, new(0.), 0, .3
		case 5:
			e.Service, e.Oldest, e.Metrics.Waiting = 14.5, 62, 7
		}
		d.Engines = append(d.Engines, e)
	}
	for i := range 30 {
		f := status.Flow{
			Flow: fmt.Sprintf("team-%02d", i), Tier: "default", Waiting: 12 - i/3, Since: float64(i) / 7, Why: "stock", InFlight: 2, Weight: 1,
			Entitled: new(1. / 30), Attained: new(1. / 40), Requests: new(.7), Rejected: new(0.),
		}
		if i == 0 {
			f = status.Flow{
				Flow: "crawler-with-a-long-name@example.com", Tier: "sheddable", Waiting: 400, WaitingCost: 123456, Since: 92, Why: "cap", InFlight: 8, Weight: 0.5,
				Entitled: new(1.), Attained: new(1.), Requests: new(3.), Rejected: new(2.25),
			}
		}
		d.Flows = append(d.Flows, f)
	}
	d.LeftOut.Flows = 70
	for i := range 6 {
		d.Rejections = append(d.Rejections, status.Rejection{At: at.Add(-time.Duration(i) * 700 * time.Millisecond), Flow: "crawler-with-a-long-name@example.com", Tier: "sheddable", Model: "m", Outcome: "flow-full", Limit: "flow-capacity", LimitValue: 100, Holders: []status.Holder{{Flow: "crawler-with-a-long-name@example.com", Held: 100}}})
	}
	return d
}

// wantFrame compares a frame with a file of testdata, in which escapes are readable.
func wantFrame(t *testing.T, name string, m tea.Model) {
	t.Helper()
	frame := m.(Model).Frame()
	lines := strings.Split(frame, "\n")
	if len(lines) != m.(Model).height {
		t.Errorf("%s: %d lines, want %d", name, len(lines), m.(Model).height)
	}
	for _, line := range lines {
		if n := ansi.StringWidth(line); n > m.(Model).width {
			t.Errorf("%s: a line of %d columns: %s", name, n, line)
		}
	}
	text := strings.ReplaceAll(frame, "\x1b", "␛") + "\n"
	golden.Check(t, filepath.Join("testdata", name+".txt"), text)
}

// screenOf is a screen of this size with answers to its first query.
func screenOf(t *testing.T, width, height int, colour bool, answers ...status.Answer) tea.Model {
	t.Helper()
	o := Options{Every: time.Second, Patience: 10 * time.Second, Colour: colour, Read: func(*status.Query) []status.Answer { return answers }}
	for i := range answers {
		o.Addresses = append(o.Addresses, fmt.Sprintf("10.1.0.%d:9004", i+1))
	}
	return steps(t, New(o, status.DefaultQuery(), answers), tea.WindowSizeMsg{Width: width, Height: height})
}

// steps updates a model by messages, or by keys given as strings.
func steps(t *testing.T, m tea.Model, messages ...any) tea.Model {
	t.Helper()
	for _, message := range messages {
		if text, is := message.(string); is {
			message = press(text)
		}
		m, _ = m.Update(message)
	}
	return m
}

func press(name string) tea.KeyPressMsg {
	switch name {
	case "enter":
		return tea.KeyPressMsg{Code: tea.KeyEnter}
	case "esc":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	case "tab":
		return tea.KeyPressMsg{Code: tea.KeyTab}
	case "backspace":
		return tea.KeyPressMsg{Code: tea.KeyBackspace}
	case "ctrl+c":
		return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

func TestFrames(t *testing.T) {
	one := status.Answer{Document: pool()}
	wantFrame(t, "80x24", screenOf(t, 80, 24, true, one))
	wantFrame(t, "200x50", screenOf(t, 200, 50, true, one))
	wantFrame(t, "no-color", screenOf(t, 80, 24, false, one))
	wantFrame(t, "moved", steps(t, screenOf(t, 80, 24, false, one), "j", "j", "j", "j", "j", "j", "j", "j", "j", "k"))
	wantFrame(t, "engines", steps(t, screenOf(t, 100, 30, false, one), "tab", "j", "s"))
	wantFrame(t, "typing", steps(t, screenOf(t, 80, 24, false, one), "/", "t", "e", "x", "backspace", "a"))
	follower := pool()
	follower.Reasons, follower.Healthy, follower.Flows, follower.Rejections = nil, true, nil, nil
	follower.Notes = []status.Note{{ID: "flows-rejected", Text: "all of 1 of 2 flows", Flows: []status.Holder{{Flow: "a\x1b[2J", Held: 3}}}}
	follower.Pool = status.Pool{Profile: "recommended", Lacks: "not the leader", Leader: "weir-0"}
	wantFrame(t, "follower", steps(t, screenOf(t, 80, 24, false, status.Answer{Document: follower}, one), "r"))
	wantFrame(t, "detail", steps(t, screenOf(t, 80, 24, false, one), "enter", answered{question: 1, answers: []status.Answer{one}}))
	gone := status.Answer{Err: errors.New("connection refused")}
	wantFrame(t, "lost", steps(t, screenOf(t, 80, 24, false, one), answered{at: pool().At, answers: []status.Answer{gone}}))
}

// Frames fit every terminal, however small, and show no control character of a client's name.
func TestFramesFit(t *testing.T) {
	d := pool()
	d.Flows[1].Flow = "evil\x1b[2J\n名前がとても長いテナントの名前がとても長いテナント"
	for width := range 120 {
		for _, height := range []int{0, 1, 2, 3, 5, 9, 24, 60} {
			m := screenOf(t, width, height, false, status.Answer{Document: d}).(Model)
			for _, keys := range [][]any{nil, {"tab"}, {"enter"}, {"/"}} {
				frame := steps(t, m, keys...).(Model).Frame()
				lines := strings.Split(frame, "\n")
				if len(lines) != max(1, height) || strings.Contains(frame, "\x1b") {
					t.Fatalf("%d×%d after %v: %d lines:\n%q", width, height, keys, len(lines), frame)
				}
				for _, line := range lines {
					if ansi.StringWidth(line) > width {
						t.Fatalf("%d×%d after %v: a line is too wide: %q", width, height, keys, line)
					}
				}
			}
		}
	}
}
