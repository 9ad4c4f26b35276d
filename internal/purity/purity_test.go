package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The core packages are pure. Only the decisions, their records and the reading of requests use the other core packages,
// which do not import each other.
func TestCoreIsPure(t *testing.T) {
	below := map[string][]string{
		"dispatch": ours("fairqueue", "invalid", "quota", "scheduling", "stock"),
		"request": append(ours("estimate", "body", "fairqueue", "invalid"),
			"crypto/sha256", "encoding/hex", "net/url", "path"),
		"decision": append(ours("dispatch", "scheduling"), "encoding/json", "unicode/utf16", "github.com/weir-epp/weir/internal/printable"),
		"body":     {"bufio", "bytes", "encoding/binary", "encoding/json", "mime", "net/textproto", "regexp", "unicode/utf16"},
		"usage":    {"bytes", "encoding/json"},
	}
	for _, name := range []string{
		"body", "decision", "dispatch", "estimate", "fairqueue", "stock", "scheduling", "invalid", "quota", "request", "usage",
	} {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			files := sources(t, fset, filepath.Join("..", "..", "pkg", name))
			if len(files) == 0 {
				t.Fatal("no source files: the package is elsewhere")
			}
			for _, problem := range Problems(fset, files, below[name]...) {
				t.Error(problem)
			}
		})
	}
}

// ours returns the paths of packages.
func ours(names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, "github.com/weir-epp/weir/pkg/"+name)
	}
	return paths
}

// The simulated engine has no clock either: it runs in virtual time.
func TestSimulatedEngineIsPure(t *testing.T) {
	fset := token.NewFileSet()
	for _, problem := range Problems(fset, sources(t, fset, filepath.Join("..", "modelsim", "engine"))) {
		t.Error(problem)
	}
}

// The merge of the names is pure too, and imports only values of the API.
func TestNamesArePure(t *testing.T) {
	fset := token.NewFileSet()
	files := sources(t, fset, filepath.Join("..", "names"))
	for _, problem := range Problems(fset, files, "github.com/weir-epp/weir/internal/kubeapi",
		"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/types") {
		t.Error(problem)
	}
}

// The files of a stream have an order in which each uses later ones only: server.go first, the codec's last.
func TestStreamsRunDown(t *testing.T) {
	fset := token.NewFileSet()
	for _, line := range Circle(fset, sources(t, fset, filepath.Join("..", "..", "pkg", "extproc"))) {
		t.Error(line)
	}
}

// The check finds a circle through functions, methods, types, variables and constants. Files that only share fields or
// import the same packages are in none.
func TestCircle(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"func f() { g() }", "func g() { f() }", "a.go uses g of b.go; b.go uses f of a.go"},
		{"type T struct{}; func f() { U{}.m() }", "type U struct{}; func (U) m() { _ = T{} }", "a.go uses U of b.go; b.go uses T of a.go"},
		{"const c = v; var w = d", "var v = 1; const d = c", "a.go uses d of b.go; b.go uses c of a.go"},
		{"type T struct{ u *U }", "type U struct{ n int }; func (u *U) f() {}", ""},
		{"type T struct{ n int }; func f() U { return U{} }", `import "x/time"; type U struct{ time.X }; func (u U) n() {}`, ""},
		{"func f() { g() }", "func g() {}; func h() { g() }", ""},
	} {
		fset := token.NewFileSet()
		var files []*ast.File
		for name, source := range map[string]string{"a.go": c.a, "b.go": c.b} {
			f, err := parser.ParseFile(fset, name, "package p; "+source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if got := strings.Join(Circle(fset, files), "; "); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// sources returns the package's files without its tests.
func sources(t *testing.T, fset *token.FileSet, dir string) (files []*ast.File) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	return files
}

// The check finds each kind of impurity.
func TestImpureIsSeen(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`func f() { go f() }`, "go statement"},
		{`type T struct{ done chan struct{} }`, "channel type"},
		{`func f() { _ = make(chan int) }`, "channel type"},
		{`func f(c C) { c <- 1 }`, "channel send"},
		{`func f(c C) { <-c }`, "channel receive"},
		{`func f(c C) { close(c) }`, "call of close"},
		{`func f() { select {} }`, "select statement"},
		{`func f() { println(1) }`, "call of println"},
		{`import "sync"`, "import of sync"},
		{`import "context"`, "import of context"},
		{`import "log"`, "import of log"},
		{`import "log/slog"`, "import of log/slog"},
		{`import "os"`, "import of os"},
		{`import "net"`, "import of net"},
		{`import "unsafe"`, "import of unsafe"},
		{`import "math/rand"`, "import of math/rand"},
		{`import "github.com/weir-epp/weir/pkg/stock"`, "import of github.com/weir-epp/weir/pkg/stock"},
		{`import "github.com/go-logr/logr"`, "import of github.com/go-logr/logr"},
		{`import . "time"`, "import of time as ."},
		{`import "time"; func f() { _ = time.Now() }`, "use of time.Now"},
		{`import "time"; var now = time.Now`, "use of time.Now"},
		{`import clock "time"; func f() { clock.Sleep(1) }`, "use of time.Sleep"},
		{`import "time"; type T struct{ t *time.Timer }`, "use of time.Timer"},
		{`import "time"; func f(t time.Time) { _ = t.In(time.Local) }`, "use of time.Local"},
		{`import "math/rand/v2"; func f() { _ = rand.IntN(3) }`, "use of math/rand/v2.IntN"},
		{`import "fmt"; func f() { fmt.Println() }`, "use of fmt.Println"},
		{`var n int`, "package-level variable n without a value"},
		{`var seen = make(map[string]bool)`, "package-level variable seen from a call of make"},
		{`import "math/rand/v2"; var r = rand.New(rand.NewPCG(1, 2))`, "package-level variable r from a call of rand.New"},
		{`var n = 1; func f() { n++ }`, "write to the package-level variable n"},
		{`var n = 1; func f() { n = 2 }`, "write to the package-level variable n"},
		{`var n = 1; func f() { g(&n) }`, "write to the package-level variable n"},
		{`var m = map[int]int{}; func f() { m[1] = 2 }`, "write to the package-level variable m"},
		{`var m = map[int]int{}; func f() { delete(m, 1) }`, "write to the package-level variable m"},
		{`var s = struct{ n int }{}; func f() { s.n += 1 }`, "write to the package-level variable s"},
		{`var n = 1; func f() { for n = range 3 { } }`, "write to the package-level variable n"},
	} {
		problems := strings.Join(problemsOf(t, c.source), "\n")
		if !strings.Contains(problems, c.want) {
			t.Errorf("%s\n\tgot %q, want %q", c.source, problems, c.want)
		}
	}
}

// The check accepts pure code.
func TestPureIsPassed(t *testing.T) {
	for _, source := range []string{
		`import "errors"; var ErrFull = errors.New("full")`,
		`var table = []struct{ name string }{{"a"}}; func f() string { return table[0].name }`,
		`var n = 1; func f() { n := 2; n++ }`,
		`var n = 1; func f(n int) { n = 2 }`,
		`import "time"; func f(now time.Time, d time.Duration) time.Time { return now.Add(d) }`,
		`type clock struct{}; func (clock) Now() int { return 1 }; func f(time clock) int { return time.Now() }`,
		`import "math/rand/v2"; func f(r *rand.Rand) int { return r.IntN(3) }`,
		`func close(int) {}; func f() { close(1) }`,
	} {
		if problems := problemsOf(t, source); len(problems) > 0 {
			t.Errorf("%s\n\tgot %q", source, problems)
		}
	}
}

func problemsOf(t *testing.T, source string) []string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "snippet.go", "package core; "+source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return Problems(fset, []*ast.File{f})
}
