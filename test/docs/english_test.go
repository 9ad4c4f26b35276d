package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hardToRead are phrases that were replaced by plain English and must not come back. They are split so that this file
// does not contain them.
var hardToRead = []string{
	"one lease at e " + "is less",
	"leaves ends " + "that, once",
	"Available before it " + "is cut at 0",
	"below it, as much " + "is missing",
	"answers in a row have come past " + "the main stream",
	"Who leaves the queue, " + "leaves it at once",
	"A model check knows " + "by it",
	"says " + "whether", // booleans report whether
	"tells " + "whether",
}

// No comment and no page has a phrase that is hard to read.
func TestPlainEnglish(t *testing.T) {
	err := filepath.WalkDir(root(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		flat := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "//", " ")), " ")
		for _, phrase := range hardToRead {
			if strings.Contains(flat, phrase) {
				t.Errorf("%s: %q", path, phrase)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
