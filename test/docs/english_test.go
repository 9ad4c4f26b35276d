package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// noSubject begins a line whose sentence has no noun as its subject: "Who waits is told", "What is left".
var (
	noSubject = regexp.MustCompile(`^(?:Who|What|Whoever|Those|Nobody|Of)\b`)
	listMark  = regexp.MustCompile(`^(?:[*>-] |[0-9]+\. )?(?:\*\*)?`)
)

// rightlyBegun are beginnings of lines that look like such sentences and are none.
var rightlyBegun = []string{
	"Of is the spread of",        // loadgen.Comparison.Of
	"Of returns the problems of", // invalid.Of
}

// beginnings reports the lines of a Go file's comments, or of a page, that begin without a subject. A line in the
// middle of a paragraph counts as well: the sentence is mostly one of these.
func beginnings(path, text string) (problems []string) {
	comments, code := filepath.Ext(path) == ".go", false
	for i, line := range strings.Split(text, "\n") {
		line, isComment := strings.CutPrefix(strings.TrimSpace(line), "//")
		if line = strings.TrimSpace(line); comments && !isComment {
			continue
		}
		if !comments {
			line = line[len(listMark.FindString(line)):]
		}
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		right := slices.ContainsFunc(rightlyBegun, func(begin string) bool { return strings.HasPrefix(line, begin) })
		if noSubject.MatchString(line) && !code && !right {
			problems = append(problems, fmt.Sprintf("%s:%d: begins without a noun as its subject: %s", path, i+1, line))
		}
	}
	return problems
}

func TestBeginnings(t *testing.T) {
	for line, want := range map[string]int{
		"// Who waits is told.": 1, "\t\t// What is left goes.": 1, "x := 1 // Of these": 0, "// Whole numbers only.": 0,
		"// A request that waits.": 0, "// Of is the spread of one figure.": 0, `s := "// Nobody"`: 0,
	} {
		if got := beginnings("x.go", line); len(got) != want {
			t.Errorf("%q: %q", line, got)
		}
	}
	for text, want := range map[string]int{
		"* Whoever comes is rejected.": 1, "1. **Nobody** goes.": 1, "> Those that wait": 1, "Of these": 1,
		"```\nWho waits\n```\nA request.": 0, "Whom it serves": 0, "| Who waits? | `/debug/flows` |": 0,
	} {
		if got := beginnings("x.md", text); len(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// No comment and no page has a phrase that is hard to read, or a line that begins without a subject.
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
		for _, problem := range beginnings(path, string(text)) {
			t.Error(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
