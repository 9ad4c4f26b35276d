package docs

import (
	"os"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
)

func TestMain(m *testing.M) { os.Exit(binaries.Run(m, binaries.EPP, binaries.Weir)) }

// The commands of every page have the results on the page. test/docs/cluster runs those that need a cluster.
func TestCommands(t *testing.T) {
	used := map[string]bool{}
	for _, page := range pages(t) {
		for _, a := range acts(read(t, page)) {
			if _, ok := scenes[a.scene]; !ok && a.scene != InCluster && a.scene != BesideLLMD {
				t.Errorf("%s: there is no scene %q", page, a.scene)
			}
			for _, b := range a.blocks {
				for _, s := range b.steps() {
					if name := outside(s.command); name != "" {
						used[name] = true
					}
				}
			}
		}
	}
	for name := range letOut {
		if !used[name] {
			t.Errorf("%q is let out, and on no page", name)
		}
	}
	Play(t, scenes)
}

// The check notices a wanted line that is missing, or out of order.
func TestFound(t *testing.T) {
	const text = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\n\r\na   b\n"
	for _, good := range [][]string{nil, {"retry-after: …"}, {"HTTP/1.1 503 …", "a b"}, {"…", "a b"}} {
		if err := found(text, good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range [][]string{{"retry-after: 4"}, {"a b", "retry-after: 3"}, {"retry-after"}, {"HTTP/1.1"}} {
		if found(text, bad) == nil {
			t.Errorf("%q: found", bad)
		}
	}
}
