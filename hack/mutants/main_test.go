package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const code = `package queue

type Queue struct{ n int }

func (q *Queue) Push(most int) bool {
	if q.n >= most {
		return false
	}
	q.n++
	return true
}

func (q *Queue) Drop() {
	if q.n >= 2 {
		q.n--
	}
}
`

func sitesOf(t *testing.T, source string) []site {
	t.Helper()
	path := filepath.Join(t.TempDir(), "queue.go")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	sites, err := findIn(path)
	if err != nil {
		t.Fatal(err)
	}
	return sites
}

// Each mutant changes one thing of one line and says in which function.
func TestMutantsOfAFile(t *testing.T) {
	var got []string
	for _, s := range sitesOf(t, code) {
		got = append(got, s.function+": "+s.old+" => "+s.new)
	}
	want := []string{
		"Queue.Push: if q.n >= most { => if true {",
		"Queue.Push: if q.n >= most { => if false {",
		"Queue.Push: if q.n >= most { => if q.n > most {",
		"Queue.Push: return false => return true",
		"Queue.Push: q.n++ => q.n--",
		"Queue.Push: return true => return false",
		"Queue.Drop: if q.n >= 2 { => if true {",
		"Queue.Drop: if q.n >= 2 { => if false {",
		"Queue.Drop: if q.n >= 2 { => if q.n > 2 {",
		"Queue.Drop: if q.n >= 2 { => if q.n >= 3 {",
		"Queue.Drop: q.n-- => q.n++",
	}
	if !slices.Equal(got, want) {
		t.Errorf("mutants are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The same seed chooses the same mutants. A line gets one, and none that does not build.
func TestChoice(t *testing.T) {
	sites := sitesOf(t, code)
	builds := func(s site) (bool, error) { return s.old != "q.n++", nil }
	first, err := choose(slices.Clone(sites), 100, 7, builds)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := choose(slices.Clone(sites), 100, 7, builds)
	if !slices.Equal(first, second) {
		t.Errorf("one seed chose\n%v\nand\n%v", first, second)
	}
	var lines []string
	for _, m := range first {
		lines = append(lines, m.function+": "+m.old)
	}
	want := []string{
		"Queue.Drop: if q.n >= 2 {", "Queue.Drop: q.n--",
		"Queue.Push: if q.n >= most {", "Queue.Push: return false", "Queue.Push: return true",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("lines are %q, want %q", lines, want)
	}
}

// A mutant is found again after its list was written and read, and after its function got another receiver, another
// name, and more lines.
func TestMutantsAreFoundAgain(t *testing.T) {
	var mutants []mutant
	for _, s := range sitesOf(t, code) {
		mutants = append(mutants, s.mutant)
	}
	var list strings.Builder
	if err := write(&list, mutants); err != nil {
		t.Fatal(err)
	}
	entries, err := read(strings.NewReader(list.String()))
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.NewReplacer("Drop() {", "Less() {\n\tprintln()", "(q *Queue) Push", "(q *Line) Push").Replace(code)
	lines := strings.Split(moved, "\n")
	sites := sitesOf(t, moved)
	for _, e := range entries {
		m := e.mutant
		at, ok := locate(sites, m)
		if !ok {
			t.Errorf("%v is gone", m)
			continue
		}
		if got := strings.TrimSpace(lines[at.line]); got != m.old {
			t.Errorf("%v was found at %q", m, got)
		}
	}
	if _, ok := locate(sitesOf(t, strings.ReplaceAll(code, "q.n--", "q.n -= 1")), mutants[len(mutants)-1]); ok {
		t.Error("a line that is no longer there was found")
	}
}
