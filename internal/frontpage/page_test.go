package frontpage

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/weir-epp/weir/internal/status"
)

// hostile is a name that runs a script if it is not escaped.
const hostile = `<img src=x onerror=alert(1)>`

// sample returns the document of a busy epp with a hostile tenant.
func sample() *status.Document {
	at := time.Date(2026, 11, 28, 3, 0, 7, 0, time.UTC)
	d := &status.Document{
		Schema: status.Schema, At: at, Version: "v1.2.3", WindowSeconds: 30,
		Reasons: []status.Reason{{ID: "engines-down", Text: "1 of 3 engines are not ready: 10.0.0.3:8000"}},
		Notes:   []status.Note{{ID: "flows-rejected", Text: "75% were rejected", Flows: []status.Holder{{Flow: hostile, Held: 12}}}},
		Pool: status.Pool{
			Name: "inference/llama", Profile: "recommended", Ready: true, Leads: true, Engines: 3, ReadyEngines: 2, Waiting: 45, WaitingFlows: 3,
			QueueCapacity: 1000, Stock: 120, UpperBound: new(128.), Requests: 41.3, Rejected: 2.1,
		},
		Tiers: []status.Tier{
			{Name: "interactive", Waiting: 5, Limit: 500, InFlight: 70, Waits: 100, Median: 0.08, P90: 0.9, P99: 2.3},
			{Name: "bulk", Waiting: 40, Limit: 500, InFlight: 50, Waits: 100, Median: 4, P90: 12, P99: 40, Displaced: 12, Promotions: 3},
		},
		Engines: []status.Engine{
			{Address: "10.0.0.3:8000", Role: "both", Bound: new(64.), Fill: new(0.)},
			{Address: "10.0.0.2:8000", Ready: true, Circuit: "half-open", InFlight: 56, Bound: new(64.), Fill: new(0.875), Answers: 12.2, Failures: 1.5, Service: 2.1, Oldest: 14},
			{
				Address: "10.0.0.1:8000", Ready: true, Circuit: "closed", InFlight: 64, Bound: new(64.), Fill: new(1.), Answers: 29.1, Service: 1.7, Oldest: 3,
				Metrics: &status.EngineMetrics{Cache: 0.63},
			},
		},
		Flows: []status.Flow{
			{
				Flow: "team-a", Tier: "bulk", Waiting: 38, Since: 40, Why: "stock", InFlight: 41, Entitled: new(0.5), Attained: new(0.62), Requests: new(20.),
				Rejected: new(2.1),
			},
			{Flow: hostile, Tier: "interactive", Waiting: 5, Since: 0.4, Why: "stock", InFlight: 60, Entitled: new(0.75), Attained: new(0.5), Requests: new(12.), Rejected: new(0.)},
			{Flow: "team-b", Tier: "bulk", Waiting: 2, Since: 1.2, Why: "cap", InFlight: 9, Entitled: new(0.5), Attained: new(0.38), Requests: new(9.), Rejected: new(0.)},
		},
		Rejections: []status.Rejection{{At: at.Add(-3 * time.Second), Flow: "team-a", Tier: "bulk", Model: "llama-3-70b", Outcome: "flow-full", Limit: "flow-capacity", LimitValue: 100}},
	}
	d.LeftOut.Flows = 412
	return d
}

// page returns the page of a document as on a first visit.
func page(d *status.Document) *Page {
	return &Page{Document: d, Query: DefaultQuery(), Refresh: Refresh, Index: []Entry{{"/debug/status", "The document as JSON."}}}
}

func render(t *testing.T, p *Page) string {
	t.Helper()
	text, err := p.Render()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page has the same content as weir status: the verdict with its reasons, the numbers of the pool, and all tables.
func TestPage(t *testing.T) {
	text := render(t, page(sample()))
	for _, want := range []string{
		`<title>degraded – weir inference/llama</title>`, `<b><bdi>engines-down</bdi></b> <bdi>1 of 3 engines are not ready: 10.0.0.3:8000</bdi>`,
		`<p class="note"><bdi>flows-rejected: 75% were rejected: &lt;img src=x onerror=alert(1)&gt; 12</bdi></p>`,
		`2026-11-28 03:00:07 UTC, refreshed every 5 s`, `<bdi>45 of 1000</bdi>`, `in 3 flows`, `<bdi>120 of 128</bdi>`,
		`<span class="bad"><i aria-hidden="true">×</i> down</span>`, `<span class="warn"><i aria-hidden="true">▲</i> half-open</span>`,
		`<span class="good"><i aria-hidden="true">●</i> ready</span>`, `<td class="number">88%<svg class="bar"`, `<td class="number">100%<svg class="bar full"`,
		`<rect class="part" width="87.5" height="6"/>`, `<td class="name"><bdi>team-a</bdi></td>`, `<path class="tick" d="M75.0 0v6"/>`,
		`<bdi>3.0s ago</bdi>`, `<bdi>flow-full</bdi>`, `<bdi>flow-capacity 100</bdi>`, `412 more are not shown.`, `<a href="/debug/status">/debug/status</a></td><td>The document as JSON.</td>`,
		`<th scope="col" class="number" aria-sort="descending"><a href="/">waiting</a></th>`,
		`<th scope="col" class="number"><a href="/?sort-flows=since">since</a></th>`, `<a href="/?refresh=0">pause and search</a>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(text, "Show more") { // 3 of the 50 requested flows exist
		t.Error("the page promises more rows than it has room for")
	}
	healthy := sample()
	healthy.Reasons, healthy.Flows, healthy.LeftOut.Flows = nil, nil, 0
	for _, want := range []string{`<title>healthy – `, `<i aria-hidden="true">●</i> healthy</span>`, `No flow waits or runs.`} {
		if !strings.Contains(render(t, page(healthy)), want) {
			t.Errorf("the healthy page lacks %s", want)
		}
	}
}

// A page without a refresh has search fields, which keep the other parameters. A page that refreshes itself has none,
// since the refresh would empty them.
func TestSearch(t *testing.T) {
	p := page(sample())
	p.Query.Flow, p.Query.Flows, p.Query.SortFlows = "team", 3, "flow"
	text := render(t, p)
	for _, want := range []string{
		`flows with <b><bdi>team</bdi></b> <a href="/?flows=3&amp;sort-flows=flow">show all</a>`, `aria-sort="ascending"><a href="/?flow=team&amp;flows=3&amp;sort-flows=flow">flow</a>`,
		`<a href="/?flow=team&amp;flows=20&amp;sort-flows=flow">Show more</a>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(text, "<form") {
		t.Error("a page that refreshes itself has a form")
	}
	p.Refresh = 0
	text = render(t, p)
	if strings.Contains(text, `name="refresh"`) {
		t.Error("a search leads to a page that stays")
	}
	for _, want := range []string{
		`name="flow" value="team"`, `<input type="hidden" name="flows" value="3">`, `<input type="hidden" name="sort-flows" value="flow">`,
		`paused <a href="/?flow=team&amp;flows=3&amp;sort-flows=flow">go on</a>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page that stays lacks %s", want)
		}
	}
}

// fill sets every text of a value.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, text)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), text)
		}
	default:
	}
}

// For any texts in the document and the query, the page has the same elements: no script, no image, no style but its
// own, and no link to another site.
func TestTextsAreEscaped(t *testing.T) {
	for _, text := range []string{
		hostile, `"><script>alert(1)</script>`, `' onmouseover='alert(1)`, `</style><style>*{color:red}</style>`, `javascript:alert(1)`, `--><!--`,
		"\x00\x1b[2J\u202e<b>\xff",
	} {
		p := page(sample())
		fill(reflect.ValueOf(p.Document).Elem(), text)
		p.Query.Engine, p.Query.Flow, p.Query.Only, p.Refresh = text, text, text, 0
		plain := page(sample())
		fill(reflect.ValueOf(plain.Document).Elem(), "x")
		plain.Query.Engine, plain.Query.Flow, plain.Query.Only, plain.Refresh = "x", "x", "x", 0
		got, want := elements(t, render(t, p)), elements(t, render(t, plain))
		if !slices.Equal(got, want) {
			t.Errorf("%q changes the elements:\n%q\n%q", text, got, want)
		}
	}
}

// elements returns the elements of a page with the names of their attributes, and checks the links.
func elements(t *testing.T, page string) (all []string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return all
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			names := token.Data
			for _, a := range token.Attr {
				names += " " + a.Key
				if a.Key == "href" && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "data:image/svg+xml,") {
					t.Errorf("a link goes to %s", a.Val)
				}
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("attribute %s=%q", a.Key, a.Val)
				}
			}
			if token.Data == "script" || token.Data == "img" {
				t.Errorf("element %s", names)
			}
			all = append(all, names)
		case html.TextToken, html.EndTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

// The policy allows the page's own style, by the hash that a browser computes, and no script.
func TestPolicy(t *testing.T) {
	_, rest, _ := strings.Cut(render(t, page(sample())), "<style>")
	inPage, _, _ := strings.Cut(rest, "</style>")
	if !strings.Contains(Policy, "style-src 'sha256-"+hashOf(inPage)+"'") {
		t.Errorf("%s does not allow the style", Policy)
	}
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(Policy, want) {
			t.Errorf("%s lacks %s", Policy, want)
		}
	}
	if strings.Contains(Policy, "script") || strings.Contains(Policy, "unsafe") {
		t.Error(Policy)
	}
}

// A page has a bounded size for any names, and omits the last rows first.
func TestSize(t *testing.T) {
	for _, name := range []string{"tenant", strings.Repeat("<", 252)} {
		d := sample()
		d.Engines, d.Flows, d.LeftOut.Flows = nil, nil, 9000
		for i := range 500 {
			d.Engines = append(d.Engines, status.Engine{Address: fmt.Sprint("10.0.0.1:", i), Ready: true, Bound: new(64.), Fill: new(0.5)})
		}
		for i := range 1000 {
			d.Flows = append(d.Flows, status.Flow{Flow: fmt.Sprintf("%04d%s", i, name), Tier: "bulk", Waiting: 1, Why: "stock", Entitled: new(0.5), Attained: new(0.5)})
		}
		text := render(t, page(d))
		if len(text) > MaxBytes || len(text) < MaxBytes/2 {
			t.Errorf("%d bytes", len(text))
		}
		if !strings.Contains(text, ">0000"+html.EscapeString(name)) || len(d.Flows) == 1000 || d.LeftOut.Flows != 10_000-len(d.Flows) {
			t.Errorf("%d flows are there, %d left out", len(d.Flows), d.LeftOut.Flows)
		}
		if !strings.Contains(text, fmt.Sprintf("%d more are not shown.", d.LeftOut.Flows)) {
			t.Error("the page does not say how many flows it leaves out")
		}
	}
}
