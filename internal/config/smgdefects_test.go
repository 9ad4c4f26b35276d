package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page about migrating from SMG names a test or a story for each of the ten defects, and each exists.
func TestSMGDefectsHaveTests(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "smg.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{} // by directory: all of its tests
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !regexp.MustCompile(`^\| \d+ \|`).MatchString(line) {
			continue
		}
		rows++
		places := regexp.MustCompile("((?:`Test[\\w/-]+`(?:, )?)+) \\(([a-z/]+)\\)").FindAllStringSubmatch(line, -1)
		if len(places) == 0 {
			t.Errorf("no test for the defect: %s", line)
		}
		for _, place := range places {
			names, dir := place[1], place[2]
			if tests[dir] == "" {
				tests[dir] = sourceOfTests(t, filepath.Join(root, filepath.FromSlash(dir)))
			}
			for _, name := range regexp.MustCompile(`Test[\w/-]+`).FindAllString(names, -1) {
				name, story, is := strings.Cut(name, "/")
				if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(dir), "testdata", story+".txt")); is && err != nil {
					t.Errorf("%s has no story %s", dir, story)
				}
				if !strings.Contains(tests[dir], "\nfunc "+name+"(t *testing.T)") {
					t.Errorf("%s has no %s", dir, name)
				}
			}
		}
	}
	if rows != 10 || len(tests) == 0 {
		t.Errorf("%d defects with tests in %d packages, want 10 defects", rows, len(tests))
	}
}

// sourceOfTests returns the text of all test files in a directory.
func sourceOfTests(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
