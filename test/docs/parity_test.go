package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parityPages are the pages that name, row by row, the test that shows Weir's behaviour beside another system's
// documents.
var parityPages = []string{"docs/mindrouter.md", "docs/dynamo.md"}

// Each row of a table whose last column is "test" names tests, or a decision against it. Each number in the row is one
// that these tests use: in their own code, or in that of the functions of their package that they call. A row with 64
// has a test with 64. (Rows about faults of others have their numbers.)
func TestParityRowsNameTests(t *testing.T) {
	tests := testCode(t)
	for _, page := range parityPages {
		rows, inTable, faults, numbers := 0, false, false, 0
		for line := range strings.Lines(read(t, page)) {
			line = strings.TrimSpace(line)
			cells := strings.Split(strings.Trim(line, "|"), "|")
			last := strings.TrimSpace(cells[len(cells)-1])
			switch {
			case !strings.HasPrefix(line, "|"):
				inTable = false
			case last == "test":
				inTable, faults = true, strings.Contains(cells[0], "fault")
			case inTable && !strings.HasPrefix(last, "---"):
				rows++
				names := testName.FindAllString(last, -1)
				if len(names) == 0 && !strings.Contains(last, "ADR 0") {
					t.Errorf("%s: no test: %s", page, line)
				}
				var used []float64
				for _, name := range names {
					used = append(used, tests.numbers(name)...)
				}
				for _, n := range stated(cells[0]) {
					if numbers++; len(names) > 0 && !faults && !slices.ContainsFunc(used, func(u float64) bool { return u == n || inParts(u, n) }) {
						t.Errorf("%s: no test uses %v: %s", page, n, line)
					}
				}
			}
		}
		if rows < 10 || numbers < 20 {
			t.Errorf("%s: %d rows name tests, and state %d numbers", page, rows, numbers)
		}
	}
}

// inParts reports whether u is the part n of one, in thousandths or in millionths.
func inParts(u, n float64) bool { return n < 1 && (math.Round(n*1e3) == u || math.Round(n*1e6) == u) }

// The check of numbers finds present numbers, and misses absent ones.
func TestStatedNumbers(t *testing.T) {
	for cell, want := range map[string][]float64{
		"6. floors 0/3072: .95 of 1,024 tokens, p50 and `x64`": {0, 3072, 0.95, 1024},
		"better 3: lanes, ADR 0171":                            nil,
	} {
		if got := stated(cell); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", cell, got, want)
		}
	}
	tests := testCode(t)
	used := tests.numbers("TestStatedNumbers")
	if !slices.Contains(used, 3072) || !slices.Contains(used, number31()) || slices.Contains(tests.numbers("TestReadmeIsShort"), 3072) {
		t.Errorf("the test uses %v", used)
	}
}

// number31 is a number used by a test that calls it.
func number31() float64 { return 31_415 }

var (
	number    = regexp.MustCompile(`(?:\d[\d,]*\d|\d)?\.?\d+`)
	notStated = regexp.MustCompile("^\\s*\\d+\\. |better \\d|ADR \\d+|`[^`]*`|[A-Za-z]\\w*\\d\\w*")
)

// stated are the numbers in a cell, without those of a row, of a decision, and in names.
func stated(cell string) []float64 { return numbersIn(notStated.ReplaceAllString(cell, " ")) }

func numbersIn(text string) (all []float64) {
	for _, m := range number.FindAllString(text, -1) {
		if n, err := strconv.ParseFloat(strings.ReplaceAll(m, ",", ""), 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// testFunctions is the code of tests, by package and name.
type testFunctions struct {
	packages map[string]map[string]ast.Node // by directory: functions, constants and variables
	of       map[string][]string            // directories by test
}

func testCode(t *testing.T) testFunctions {
	t.Helper()
	tests := testFunctions{map[string]map[string]ast.Node{}, map[string][]string{}}
	err := filepath.WalkDir(root(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if tests.packages[dir] == nil {
			tests.packages[dir] = map[string]ast.Node{}
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					tests.of[d.Name.Name] = append(tests.of[d.Name.Name], dir)
				}
				tests.packages[dir][d.Name.Name] = d
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range v.Names {
							tests.packages[dir][name.Name] = v
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// numbers are those in the code of a test, and in the declarations of its package that it uses.
func (f *testFunctions) numbers(test string) (all []float64) {
	for _, dir := range f.of[test] {
		code, seen, next := f.packages[dir], map[string]bool{test: true}, []string{test}
		for len(next) > 0 {
			node := code[next[0]]
			next = next[1:]
			ast.Inspect(node, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					if code[n.Name] != nil && !seen[n.Name] {
						seen[n.Name] = true
						next = append(next, n.Name)
					}
				case *ast.BasicLit:
					all = append(all, numbersIn(strings.ReplaceAll(n.Value, "_", ""))...)
				}
				return true
			})
		}
	}
	return all
}
