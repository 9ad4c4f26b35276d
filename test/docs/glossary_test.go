package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every word of the glossary in ARCHITECTURE.md is used in the code, in a name or a comment.
func TestGlossary(t *testing.T) {
	code := strings.ToLower(productionCode(t))
	words := glossary(t)
	if len(words) < 50 {
		t.Fatalf("the glossary has %d words: %q", len(words), words)
	}
	for _, word := range words {
		stem := strings.TrimSuffix(strings.ToLower(word), "e")
		if !regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(stem), " ", `[ -]?`)).MatchString(code) {
			t.Errorf("glossary: the code does not use %q", word)
		}
	}
}

// glossary returns the first column of the tables in the glossary of ARCHITECTURE.md.
func glossary(t *testing.T) []string {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Glossary\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var words []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, " | ")
		first, isRow := strings.CutPrefix(cells[0], "| ")
		if isRow && first != "word" && first != "verb" {
			words = append(words, strings.Split(first, ", ")...)
		}
	}
	return words
}

// productionCode returns the text of all Go files of pkg, internal and cmd that are not tests.
func productionCode(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	for _, dir := range []string{"pkg", "internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root(), dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return code.String()
}
