package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

// large returns a document with so many rows, and flows with names of this kind.
func large(engines, flows int, name func(int) string) *Document {
	d := &Document{Schema: Schema, At: time.Unix(1_800_000_000, 123_456_789).UTC(), Version: "v1.2.3 (0123456789abcdef0123456789abcdef01234567, go1.26.8)"}
	for i := range engines {
		d.Engines = append(d.Engines, Engine{
			Address: fmt.Sprintf("[2001:db8:1234:5678:9abc:def0:1234:%x]:8000", i), Role: "both", Circuit: "half-open", Bound: new(127.123456), Fill: new(1. / 3),
			Answers: 1. / 3, Failures: 1. / 7, Service: 1. / 9, Oldest: 1. / 11, Metrics: &EngineMetrics{Running: 100, Waiting: 100, Cache: 1. / 3, Age: 1. / 3},
		})
	}
	for i := range flows {
		d.Flows = append(d.Flows, Flow{
			Flow: name(i), Tier: "interactive", Waiting: 1000 - i, WaitingCost: 1 << 40, Since: 1. / 3, Why: "reservation", InFlight: 12, Weight: 1,
			Entitled: new(1. / 3), Attained: new(1. / 7), Requests: new(1. / 9), Rejected: new(1. / 11),
		})
	}
	return d
}

// A document of 500 engines and the default 100 flows is complete. The worst names omit rows until the document fits.
func TestEncode(t *testing.T) {
	worst := func(i int) string { return fmt.Sprintf("%04d", i) + strings.Repeat("\x01", 252) }
	for _, test := range []struct {
		engines, flows         int
		name                   func(int) string
		leastEngines, leastAll int
	}{
		{500, 100, func(i int) string { return fmt.Sprintf("sha256:%032x", i) }, 500, 600},
		{500, 1000, func(i int) string { return fmt.Sprint("tenant-", i) }, 200, 500},
		{500, 1000, worst, 200, 250},
		{0, 0, nil, 0, 0},
	} {
		d := large(test.engines, test.flows, test.name)
		text, err := d.Encode()
		if err != nil || len(text) > MaxBytes {
			t.Fatalf("%d engines and %d flows: %d bytes, %v", test.engines, test.flows, len(text), err)
		}
		var read Document
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if len(read.Engines) < test.leastEngines || len(read.Engines)+len(read.Flows) < test.leastAll {
			t.Errorf("%d engines and %d flows: only %d and %d are there", test.engines, test.flows, len(read.Engines), len(read.Flows))
		}
		if len(read.Engines)+read.LeftOut.Engines != test.engines || len(read.Flows)+read.LeftOut.Flows != test.flows {
			t.Errorf("%d engines and %d flows: %d and %d are there, %+v left out", test.engines, test.flows, len(read.Engines), len(read.Flows), read.LeftOut)
		}
		if len(read.Flows) > 0 && read.Flows[0].Waiting != 1000 {
			t.Errorf("the first flow has gone")
		}
	}
}

// A query is unchanged by HTTP. The error of a wrong parameter has its valid values.
func TestParseQuery(t *testing.T) {
	q := Query{Engines: 7, Flows: 0, Rejections: 1000, Engine: "10.0.", Flow: "a&b=c", Only: "x y", SortEngines: "fill", SortFlows: "since"}
	if got, err := ParseQuery(q.Values()); err != nil || got != q {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ParseQuery(nil); err != nil || got != DefaultQuery() {
		t.Errorf("without parameters: %+v, %v", got, err)
	}
	_, err := ParseQuery(url.Values{"engines": {"-1"}, "flows": {"1001"}, "rejections": {"x"}, "sort-flows": {"age"}, "sort-engines": {""}, "limit": {"5"}})
	want := "engines: \"-1\": must be from 0 to 1000\nflows: \"1001\": must be from 0 to 1000\n" +
		"limit: unknown parameter; must be one of engine, engines, flow, flows, only-flow, rejections, sort-engines, sort-flows\n" +
		"rejections: \"x\": must be from 0 to 1000\nsort-engines: \"\": must be one of health, endpoint, fill, rate, failures, service, oldest\n" +
		"sort-flows: \"age\": must be one of waiting, since, in-flight, rate, rejections, entitled, attained, flow"
	if err == nil || err.Error() != want {
		t.Errorf("got %v,\nwant %s", err, want)
	}
}

// Rows have the order of the query: the largest first, unknown values last, and equal ones by name.
func TestSelect(t *testing.T) {
	d := func() *Document {
		return &Document{
			Engines: []Engine{{Address: "b:1", Ready: true, Fill: new(.5), Service: 1}, {Address: "a:1", Ready: true, Circuit: "open", Service: 2}, {Address: "c:1", Fill: new(1.)}},
			Flows: []Flow{
				{Flow: "ann", Waiting: 1, Since: 9, Entitled: new(.5)},
				{Flow: "Bob", Waiting: 5, InFlight: 3, Requests: new(2.)},
				{Flow: "eve", Waiting: 5, Tier: "z", Rejected: new(1.), Attained: new(.1)},
				{Flow: "eve", Waiting: 5, Tier: "y"},
			},
			Rejections: []Rejection{{Flow: "eve"}, {Flow: "ann"}},
		}
	}
	for _, test := range []struct {
		change        func(*Query)
		engines, flow string
	}{
		{func(*Query) {}, "c:1 a:1 b:1", "Bob eve/y eve/z ann"},
		{func(q *Query) { q.SortEngines, q.SortFlows = "fill", "since" }, "c:1 b:1 a:1", "ann Bob eve/y eve/z"},
		{func(q *Query) { q.SortEngines, q.SortFlows = "service", "in-flight" }, "a:1 b:1 c:1", "Bob ann eve/y eve/z"},
		{func(q *Query) { q.SortFlows, q.SortEngines = "rate", "endpoint" }, "b:1 a:1 c:1", "Bob ann eve/y eve/z"},
		{func(q *Query) { q.SortFlows = "rejections" }, "c:1 a:1 b:1", "eve/z Bob ann eve/y"},
		{func(q *Query) { q.SortFlows = "entitled" }, "c:1 a:1 b:1", "ann Bob eve/y eve/z"},
		{func(q *Query) { q.SortFlows = "attained" }, "c:1 a:1 b:1", "eve/z Bob ann eve/y"},
		{func(q *Query) { q.SortFlows = "flow" }, "c:1 a:1 b:1", "Bob ann eve/y eve/z"},
		{func(q *Query) { q.Engine, q.Flow = "B", "E" }, "b:1", "eve/y eve/z"},
		{func(q *Query) { q.Only, q.Engines = "Bob", 1 }, "c:1", "Bob"},
		{func(q *Query) { q.Only, q.Engines, q.Flows = "bob", 0, 1 }, "", ""},
	} {
		q := DefaultQuery()
		test.change(&q)
		d := d()
		d.Select(&q)
		var engines, flows []string
		for _, e := range d.Engines {
			engines = append(engines, e.Address)
		}
		for _, f := range d.Flows {
			flows = append(flows, strings.TrimSuffix(f.Flow+"/"+f.Tier, "/"))
		}
		if strings.Join(engines, " ") != test.engines || strings.Join(flows, " ") != test.flow {
			t.Errorf("%+v: %v and %v", q, engines, flows)
		}
	}
	q := DefaultQuery()
	q.Flows, q.Rejections, q.Flow = 1, 0, "eve"
	left := d()
	if left.Select(&q); left.LeftOut != (LeftOut{Flows: 1, Rejections: 1}) {
		t.Errorf("left out: %+v", left.LeftOut)
	}
}

// A pool is healthy if every replica is. A follower is healthy if there is a leader. A replica without an answer is
// unreachable.
func TestJudge(t *testing.T) {
	well := func(p Pool) *Document { return &Document{Healthy: true, Pool: p} }
	leads, follows, alone := well(Pool{Leads: true, Leader: "weir-0"}), well(Pool{Leader: "weir-0"}), well(Pool{})
	ill := well(Pool{Leads: true})
	ill.Reasons = []Reason{{"no-engine", "no engine is ready, of 2"}}
	gone := errors.New("connection refused")
	for _, test := range []struct {
		answers []Answer
		want    Verdict
		reasons string
	}{
		{[]Answer{{Document: leads}}, Healthy, ""},
		{[]Answer{{Document: follows}}, Healthy, ""},
		{[]Answer{{Document: leads}, {Document: follows}}, Healthy, ""},
		{[]Answer{{Document: ill}}, Degraded, "no-engine: no engine is ready, of 2"},
		{[]Answer{{Address: "a", Document: ill}, {Address: "b", Err: gone}}, Degraded, "a: no-engine: no engine is ready, of 2\nb: connection refused"},
		{[]Answer{{Document: alone}, {Document: alone}}, Degraded, "no-leader: no replica leads, and none knows a leader"},
		{[]Answer{{Address: "a", Document: alone}, {Address: "b", Err: gone}}, Degraded, "b: connection refused"}, // b may lead
		{[]Answer{{Err: gone}}, Unreachable, "connection refused"},
	} {
		v, reasons := Judge(test.answers)
		if v != test.want || strings.Join(reasons, "\n") != test.reasons {
			t.Errorf("got %v with %q, want %v with %q", v, reasons, test.want, test.reasons)
		}
	}
}

// The text names the leader, and has no control character of a client.
func TestPrint(t *testing.T) {
	d := large(2, 1, func(int) string { return "evil\x1b[2Jname" })
	d.Pool, d.WindowSeconds = Pool{Profile: "recommended", Leader: "weir-1", Lacks: "not the leader", Engines: 2, ReadyEngines: 1}, 30
	d.Tiers = []Tier{{Name: "default", Waits: 1, P90: 4.2}}
	d.Notes = []Note{{ID: "flows-rejected", Text: "75% were rejected", Flows: []Holder{{Flow: "evil\x1b[2J", Held: 3}, {Flow: "b", Held: 1}}}}
	d.LeftOut.Flows, d.LeftOut.Rejections, d.Engines[0].Metrics.Waiting = 3, 7, 41
	var b bytes.Buffer
	if err := Print(&b, []Answer{{Address: "localhost:9004", Document: d}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"healthy\n", "a follower: the leader is weir-1", "1 of 2 ready", "evil\uFFFD[2Jname", "4.2s", "33%", " 0/127.123456 ", " 41 ",
		"3 more flows: --flows 4 shows more\n", "7 more rejections: --rejections 7 shows more\n", "in the last 30s",
		"\nnote      flows-rejected: 75% were rejected: evil\uFFFD[2J 3, b 1\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("a control character is shown")
	}
}

// A replica's answer that is not a status gives an error with its content.
func TestFetch(t *testing.T) {
	d := large(1, 1, func(int) string { return "f" })
	serve := func(code int, text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/debug/status" || r.URL.Query().Get("flow") != "part" {
				t.Errorf("asked for %s", r.URL)
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	good, _ := d.Encode()
	closed := httptest.NewServer(nil)
	closed.Close()
	q := DefaultQuery()
	q.Flow = "part"
	answers := Fetch(t.Context(), []string{
		serve(200, string(good)), serve(404, "404 page not found\nmore"), serve(200, "epp v1"), serve(200, `{"schema":2,"version":"v9"}`),
		strings.TrimPrefix(closed.URL, "http://"),
	}, &q)
	if a := answers[0]; a.Err != nil || !reflect.DeepEqual(a.Document, d) {
		t.Errorf("got %+v, %v", a.Document, a.Err)
	}
	for i, want := range []string{
		"is that the debug port (--debug-port, 9004)?", "/debug/status is not a status", "has schema 2, and this weir reads schema 1: use the weir of the same version (v9)",
		"no epp answers at its debug port",
	} {
		if a := answers[i+1]; a.Document != nil || a.Err == nil || !strings.Contains(a.Err.Error(), want) {
			t.Errorf("got %+v, %v, want %s", a.Document, a.Err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := Fetch(ctx, []string{"127.0.0.1:1"}, &q)[0]; !errors.Is(a.Err, context.Canceled) {
		t.Errorf("canceled: %v", a.Err)
	}
}

// Equal rejections are one row with their number, with the newest one's time and holders.
func TestEqualRejectionsAreOneRow(t *testing.T) {
	now := time.Unix(1000, 0)
	of := func(ago int, outcome, flow string, held int64) Rejection {
		return Rejection{
			At: now.Add(-time.Duration(ago) * time.Second), Outcome: outcome, Flow: flow, Limit: "flow-capacity", LimitValue: 10,
			Holders: []Holder{{Flow: flow, Held: held}},
		}
	}
	d := Document{At: now, Rejections: []Rejection{
		of(1, "flow-full", "a", 10), of(2, "flow-full", "b", 9), of(3, "flow-full", "a", 8), of(4, "shed", "a", 7), of(5, "flow-full", "a", 6), of(6, "shed", "a", 5),
		{At: now, Outcome: "shed", Flow: "a", Limit: "upper-bound"},
	}}
	want := [][]string{
		{"1.0s ago", "flow-full ×3", "a", "-", "-", "flow-capacity 10, held by a 10"},
		{"2.0s ago", "flow-full", "b", "-", "-", "flow-capacity 10, held by b 9"},
		{"4.0s ago", "shed ×2", "a", "-", "-", "flow-capacity 10, held by a 7"},
		{"0ms ago", "shed", "a", "-", "-", "upper-bound"},
	}
	if got := d.RejectionRows(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}
