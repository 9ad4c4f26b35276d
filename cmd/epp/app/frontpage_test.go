package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/frontpage"
)

// asked requests a page of a server in this process.
func asked(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// The front page refreshes itself, runs no script, fits in no frame and stays in no cache. It has the parameters of the
// document.
func TestFrontPage(t *testing.T) {
	o := testOptions()
	o.ConfigText = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n" +
		"flows: { key: [\"header:x-user\"] }"
	r := start(t, o)
	granted(t, r.request(t.Context(), [2]string{"x-user", "ann"}))
	r.request(t.Context(), [2]string{"x-user", "<b>bob</b>"})
	expect.True(t, "one waits", func() bool { return r.pool.controller.State().Queued == 1 })
	pages := newDebugServer(r.App).Handler
	w := asked(pages, http.MethodGet, "/")
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": frontpage.Policy, "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-store", "Refresh": "5", "Referrer-Policy": "no-referrer",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, want := range []string{"healthy", "profile wfq", "192.0.2.1:8000", "ann", "&lt;b&gt;bob&lt;/b&gt;", "/debug/status"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if w := asked(pages, http.MethodGet, "/?flow=ann&refresh=0"); w.Header().Get("Refresh") != "" || strings.Contains(w.Body.String(), "bob") {
		t.Errorf("a page about ann that stays: Refresh %q\n%s", w.Header().Get("Refresh"), w.Body)
	}
	if w := asked(pages, http.MethodGet, "/?flow=&engine=&refresh="); w.Code != http.StatusOK || w.Header().Get("Refresh") != "5" {
		t.Errorf("with empty parameters: %d", w.Code)
	}
	for target, want := range map[string]string{
		"/?refresh=-1": "refresh: must be from 0 to 3600", "/?refresh=x": "refresh: must be", "/?refresh=3601": "refresh: must be",
		"/?flows=1001": `flows: "1001": must be from 0 to 1000`, "/?tenant=a": "tenant: unknown parameter",
	} {
		if w := asked(pages, http.MethodGet, target); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	for _, test := range []struct {
		method, target string
		want           int
	}{
		{http.MethodHead, "/", http.StatusOK},
		{http.MethodPost, "/", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/debug/status", http.StatusMethodNotAllowed},
		{http.MethodGet, "/favicon.ico", http.StatusNotFound},
		{http.MethodGet, "/debug/pprof/", http.StatusNotFound},
	} {
		if w := asked(pages, test.method, test.target); w.Code != test.want {
			t.Errorf("%s %s: %d, want %d", test.method, test.target, w.Code, test.want)
		}
	}
}

// With 500 engines and 10,000 flows the page is bounded, and states the number of omitted rows.
func TestFrontPageOfManyFlows(t *testing.T) {
	a := crowd(t, 500, 10_000)
	w := asked(newDebugServer(a).Handler, http.MethodGet, "/?engines=1000&flows=1000")
	if w.Code != http.StatusOK || w.Body.Len() > frontpage.MaxBytes {
		t.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
	}
	if !strings.Contains(w.Body.String(), "more are not shown") || !strings.Contains(w.Body.String(), "10000 of 20000") {
		t.Error("the page does not say how much it leaves out")
	}
}

// The index has every path of the port: each entry leads to its own page, and every path in the manual is an entry.
func TestIndexOfTheDebugPort(t *testing.T) {
	o := testOptions()
	o.Pprof = true
	r := start(t, o)
	mux, ok := newDebugServer(r.App).Handler.(*http.ServeMux)
	if !ok {
		t.Fatal("the debug server has no mux")
	}
	patternOf := func(path string) string {
		_, pattern := mux.Handler(httptest.NewRequest(http.MethodGet, path, nil))
		return pattern
	}
	index := map[string]bool{}
	front := asked(mux, http.MethodGet, "/").Body.String()
	for _, p := range r.debugPages() {
		index[p.entry.Path] = true
		if got := patternOf(p.entry.Path); got != p.pattern {
			t.Errorf("%s leads to %q, want %q", p.entry.Path, got, p.pattern)
		}
		if line := fmt.Sprintf(`<a href="%s">%[1]s</a></td><td>%s</td>`, p.entry.Path, p.entry.About); !strings.Contains(front, line) {
			t.Errorf("the page lacks %s", line)
		}
	}
	mentioned := regexp.MustCompile(`/(?:debug/[a-z]+|statusz)\b`)
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	manual := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range mentioned.FindAllString(string(text), -1) {
			manual[path] = true
		}
	}
	delete(manual, "/debug/faults") // of weir engine
	delete(manual, "/debug/pprof")
	for path := range manual {
		if !index[path] {
			t.Errorf("the manual mentions %s, which is not in the index", path)
		}
	}
	for path := range index {
		if path != "/" && !strings.HasPrefix(path, "/debug/pprof/") && !manual[path] {
			t.Errorf("%s is in the index, and the manual does not mention it", path)
		}
	}
}
