package browser

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// A tenant whose name is an element with a script appears by its name. The page runs no script, its own style obeys its
// policy, and it reloads itself.
func TestNamesAreText(t *testing.T) {
	r := newRig(t)
	r.share()
	b := open(t)
	b.visit(r.epp.DebugURL + "/")
	look := func(when string) {
		var names []string
		b.eval(`Array.from(document.querySelectorAll("table.flows td.name"), d => d.textContent)`, &names)
		if !slices.Contains(names, hostile) || !slices.Contains(names, "search") {
			t.Errorf("%s: the flows are %q", when, names)
		}
		var elements int
		b.eval(`document.querySelectorAll("script, img, iframe, object, embed, [onerror], [style]").length`, &elements)
		if elements != 0 {
			t.Errorf("%s: %d elements that the page does not have", when, elements)
		}
		var title string
		b.eval(`document.title`, &title)
		if !strings.HasPrefix(title, "degraded") {
			t.Errorf("%s: the title is %q", when, title)
		}
	}
	look("at first")
	var padding string // that a style sheet is in use
	b.eval(`getComputedStyle(document.querySelector("td.number")).textAlign`, &padding)
	if padding != "right" {
		t.Errorf("numbers are aligned %s", padding)
	}
	before := b.loaded
	b.awaitLoad(before) // Refresh
	look("after its refresh")
	if len(b.said) > 0 {
		t.Errorf("Chromium complains:\n%s", strings.Join(b.said, "\n"))
	}
}

// Chromium detects each fault that TestNamesAreText looks for: a script from a name, and, under the page's policy, the
// attempt.
func TestChromiumNoticesScripts(t *testing.T) {
	policy := policyOf(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/policy" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>page</title><style>p{color:red}</style><p>%s</p>`, hostile)
	}))
	t.Cleanup(server.Close)
	b := open(t)
	for path, want := range map[string]string{"/": "run", "/policy": "page"} {
		b.visit(server.URL + path)
		var title string
		b.eval(`document.title`, &title)
		if title != want {
			t.Errorf("%s: the title is %q, want %q", path, title, want)
		}
	}
	said := strings.Join(b.said, "\n")
	for _, want := range []string{"style-src", "img-src"} {
		if !strings.Contains(said, want) {
			t.Errorf("Chromium does not complain about %s:\n%s", want, said)
		}
	}
}

// policyOf returns the policy of a real page.
func policyOf(t *testing.T) string {
	t.Helper()
	response, err := http.Get(newRig(t).epp.DebugURL + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header.Get("Content-Security-Policy")
}

// The page fits into every window: only its tables are wider, and scroll by themselves. It is legible in light and dark
// colours: texts have a contrast of at least 4.5 to 1.
func TestPageFits(t *testing.T) {
	r := newRig(t)
	r.share()
	b := open(t)
	for _, width := range []int{320, 390, 640, 1100, 1920} {
		for _, dark := range []bool{false, true} {
			b.window(width, 900, 1, dark)
			b.visit(r.epp.DebugURL + "/?refresh=0")
			var wide int
			b.eval(`document.documentElement.scrollWidth`, &wide)
			if wide > width {
				t.Errorf("in a window of %d pixels the page has %d", width, wide)
			}
			var faint []string
			b.eval(contrasts, &faint)
			if len(faint) > 0 {
				t.Errorf("%d pixels, dark %t: too faint: %q", width, dark, faint)
			}
		}
	}
	b.window(640, 900, 1, false) // 80 columns: the address, the state and the fill of engines are visible
	var right float64
	b.eval(`document.querySelector("table.engines tbody td:nth-child(3)").getBoundingClientRect().right`, &right)
	if right > 640 {
		t.Errorf("the fill ends at %g pixels", right)
	}
}

// contrasts lists the texts of a page whose contrast to their background is below 4.5, by WCAG 2.
const contrasts = `(() => {
  const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.textContent.trim()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) faint.add(e.tagName + " " + node.textContent.trim());
  }
  return Array.from(faint);
})()`

var picture = flag.String("picture", "", "where TestScreenshot writes the picture of the page")

// The screenshot of docs/status.md shows a busy pool.
func TestScreenshot(t *testing.T) {
	r := newRig(t)
	r.share()
	b := open(t)
	b.window(1100, 900, 1.5, false)
	b.visit(r.epp.DebugURL + "/")
	var bottom float64 // the index is in the text
	b.eval(`document.querySelector("#rejections").getBoundingClientRect().top`, &bottom)
	b.window(1100, int(bottom)+220, 1.5, false)
	shot := b.screenshot()
	image, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	colours := map[any]bool{}
	for x := range image.Bounds().Dx() {
		for y := range image.Bounds().Dy() {
			colours[image.At(x, y)] = true
		}
	}
	if image.Bounds().Dx() != 1650 || len(colours) < 50 {
		t.Errorf("the picture is %d pixels wide and has %d colours", image.Bounds().Dx(), len(colours))
	}
	if *picture != "" {
		if err := os.WriteFile(*picture, shot, 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
}
