package status

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/printable"
)

// A rejection's row has the limit, its value in its unit, and the flows with the most of it, without control
// characters.
func TestRejectionNamesItsLimit(t *testing.T) {
	for want, r := range map[string]*Rejection{
		"-":               {},
		"tier-share":      {Limit: "tier-share"},
		"flow-capacity 5": {Limit: "flow-capacity", LimitValue: 5}, // of an earlier epp
		"quota 5000 tokens\uFFFD, held by ann 4990": {Limit: "quota", LimitValue: 5000, LimitText: "5000 tokens\x1b", Holders: []Holder{{Flow: "ann", Held: 4990}}},
		"queue-ttl 30s, held by ann 9, b\uFFFD 1":   {Limit: "queue-ttl", LimitValue: 30_000, LimitText: "30s", Holders: []Holder{{Flow: "ann", Held: 9}, {Flow: "b\x1b", Held: 1}}},
		"user-in-flight 2, held by ann (b\uFFFD) 2": {Limit: "user-in-flight", LimitValue: 2, Holders: []Holder{{Flow: "ann", User: "b\x1b", Held: 2}}},
	} {
		cells := r.Cells(time.Time{})
		if len(cells) != len(RejectColumns) || cells[len(cells)-1] != want {
			t.Errorf("got %q, want %q last", cells, want)
		}
	}
}

// No field of an epp's answer controls the terminal, and Read follows no redirection.
func TestHostileEPP(t *testing.T) {
	const bad = "\x1b[2J\u009b31m\u202e\r\nx"
	d := &Document{
		Schema: Schema, Version: bad, Reasons: []Reason{{bad, bad}}, Pool: Pool{Name: bad, Profile: bad, Lacks: bad, Leader: bad}, WindowSeconds: 1,
		Tiers: []Tier{{Name: bad}}, Engines: []Engine{{Address: bad, Ready: true, Role: bad, Circuit: bad}}, Flows: []Flow{{Flow: bad, Tier: bad, Why: bad}},
		Rejections: []Rejection{{Flow: bad, Tier: bad, Model: bad, Outcome: bad, Limit: bad, LimitValue: 1, LimitText: bad, Holders: []Holder{{Flow: bad, User: bad, Held: 1}}}},
	}
	text, err := d.Encode()
	if err != nil || strings.ContainsFunc(strings.TrimSuffix(string(text), "\n"), printable.Commands) {
		t.Errorf("%v %q", err, text)
	}
	var out bytes.Buffer
	if err := Print(&out, []Answer{{Document: d}, {Err: errors.New(bad)}}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), printable.Commands) {
			t.Errorf("%q", line)
		}
	}
	e := Ended{ID: bad, Flow: bad, Tier: bad, Model: bad, TargetModel: bad, Endpoint: bad, Served: bad, Outcome: bad, Error: bad}
	if line := e.Line(); strings.ContainsFunc(line, printable.Commands) {
		t.Errorf("%q", line)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was followed") }))
	t.Cleanup(elsewhere.Close)
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	t.Cleanup(s.Close)
	address, q := strings.TrimPrefix(s.URL, "http://"), DefaultQuery()
	if err := Fetch(t.Context(), []string{address}, &q)[0].Err; err == nil || !strings.Contains(err.Error(), "302 Found") {
		t.Errorf("the status: %v", err)
	}
	if _, err := Tail(t.Context(), address, "", nil); err == nil || !strings.Contains(err.Error(), "302 Found") {
		t.Errorf("the tail: %v", err)
	}
}
