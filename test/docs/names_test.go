package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
)

// documents are the pages and other documents for readers.
func documents(t *testing.T) []string {
	t.Helper()
	return append(pages(t), "ARCHITECTURE.md", "CONTRIBUTING.md")
}

var (
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`)
	goFile   = regexp.MustCompile("`(?:[\\w/.-]*/)?(\\w+\\.go)`")
)

// Every test and every Go file named by a page exists. So does every test named by a decision, unless the whole
// decision is replaced.
func TestCodeExists(t *testing.T) {
	var code strings.Builder
	files := map[string]bool{}
	err := filepath.WalkDir(root(), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return fs.SkipDir
		}
		files[filepath.Base(path)] = true
		if err == nil && strings.HasSuffix(path, "_test.go") {
			var text []byte
			text, err = os.ReadFile(path)
			code.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range documents(t) {
		text := read(t, page)
		for _, name := range testName.FindAllString(text, -1) {
			if !strings.Contains(code.String(), "func "+name+"(") {
				t.Errorf("%s: there is no %s", page, name)
			}
		}
		for _, m := range goFile.FindAllStringSubmatch(text, -1) {
			if !files[m[1]] {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
	decisions, err := filepath.Glob(filepath.Join(root(), "docs", "adr", "[0-9]*.md"))
	if err != nil || len(decisions) < 50 {
		t.Fatalf("decisions: %d, %v", len(decisions), err)
	}
	for _, path := range decisions {
		page := filepath.Join("docs", "adr", filepath.Base(path))
		text := read(t, page)
		if strings.Contains(text, "\nStatus: replaced by ") {
			continue
		}
		for _, name := range testName.FindAllString(text, -1) {
			if !strings.Contains(code.String(), "func "+name+"(") {
				t.Errorf("%s: there is no %s", page, name)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every link within the repository has a target, and so has every link to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, heading, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(root(), target)); err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
			} else if heading != "" && !hasHeading(read(t, target), heading) {
				t.Errorf("%s: %s: there is no such heading", page, m[1])
			}
		}
	}
}

var notInAnchor = regexp.MustCompile("[^a-z0-9 _-]")

// hasHeading reports whether a page has a heading with that anchor.
func hasHeading(text, anchor string) bool {
	for line := range strings.Lines(text) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !strings.HasPrefix(line, "#") || !ok {
			continue
		}
		if strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

var flag = regexp.MustCompile("(?:^|[ `(])--([a-z][a-z-]*[a-z])")

// others are the flags of other programs on the pages.
var others = map[string]string{
	"max-num-seqs":                         "vLLM",
	"base-id":                              "Envoy",
	"disable-hot-restart":                  "Envoy",
	"retry-connrefused":                    "curl",
	"retry":                                "curl",
	"wait":                                 "Helm",
	"for":                                  "kubectl",
	"namespace":                            "Helm",
	"server-side":                          "kubectl",
	"values":                               "Helm",
	"set":                                  "Helm",
	"install":                              "Helm",
	"force-replace":                        "Helm",
	"skip-crds":                            "Helm",
	"dry-run":                              "kubectl",
	"patch":                                "kubectl",
	"replicas":                             "kubectl",
	"selector":                             "kubectl",
	"type":                                 "kubectl",
	"as":                                   "kubectl",
	"priority-scheduler-enabled":           "SMG",
	"priority-scheduler-default-max-class": "SMG",
	"enable-prompt-tokens-details":         "vLLM",
	"enable-cache-report":                  "SGLang",
	"block-size":                           "vLLM",
	"enable-prefix-caching":                "vLLM",
	"max-loras":                            "vLLM",
	"max-running-requests":                 "SGLang",
	"routing-logic":                        "production-stack",
	"rate-limit-tokens-per-second":         "SMG",
	"max-concurrent-requests":              "SMG",
	"queue-size":                           "SMG",
	"session-key":                          "production-stack",
	"static-backends":                      "production-stack",
	"static-models":                        "production-stack",
}

// Every flag on a page is epp's or weir's, or listed above.
func TestFlagsExist(t *testing.T) {
	var help strings.Builder
	for _, command := range []string{"epp --help", "weir help config", "weir help demo", "weir help replay", "weir help explain", "weir help bench", "weir help simulate", "weir help engine", "weir help load", "weir help status", "weir help top", "weir help tail", "weir help collect", "weir help doctor", "weir help envoy", "weir bench flood --help", "weir bench proxy --help", "weir bench usage --help", "weir bench affinity --help"} {
		name, arguments, _ := strings.Cut(command, " ")
		out, err := exec.Command(binaries.Path(name), strings.Fields(arguments)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		help.Write(out)
	}
	for _, page := range pages(t) {
		for _, m := range flag.FindAllStringSubmatch(read(t, page), -1) {
			known := regexp.MustCompile(`--` + regexp.QuoteMeta(m[1]) + `\b`)
			if others[m[1]] == "" && !known.MatchString(help.String()) {
				t.Errorf("%s: --%s: no flag of epp or weir", page, m[1])
			}
		}
	}
}

var metric = regexp.MustCompile(`\bweir_[a-z_]+[a-z]`)

// Every metric on a page is in docs/metrics.md, which a test in cmd/epp/app verifies.
func TestMetricsExist(t *testing.T) {
	known := read(t, "docs/metrics.md")
	for _, page := range documents(t) {
		for _, name := range metric.FindAllString(read(t, page), -1) {
			if !strings.Contains(known, "`"+name+"`") {
				t.Errorf("%s: %s is not in docs/metrics.md", page, name)
			}
		}
	}
}

// The README can be read in one sitting.
func TestReadmeIsShort(t *testing.T) {
	if n := len(strings.Fields(read(t, "README.md"))); n >= 1200 {
		t.Errorf("%d words, want fewer than 1,200", n)
	}
}

// generated are the pages that programs write.
var generated = map[string]bool{"docs/config.md": true, "docs/settings-nobody-needs.md": true, "docs/e2e-vllm.md": true}

// Lines of text wrap at 120; tables and blocks need not.
func TestLinesWrap(t *testing.T) {
	for _, page := range documents(t) {
		if generated[page] {
			continue
		}
		inside := false
		for i, line := range strings.Split(read(t, page), "\n") {
			if strings.HasPrefix(line, "```") {
				inside = !inside
			}
			if !inside && len([]rune(line)) > 120 && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d: %d characters", page, i+1, len([]rune(line)))
			}
		}
	}
}
