package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	decisionLine   = regexp.MustCompile(`(?m)^\* \[(\d{4})\]\(([^)]+)\): (.+)$`)
	decisionStatus = regexp.MustCompile(`(?s)\nStatus: (.*?)\n\n`)
	decisionNumber = regexp.MustCompile(`\b0\d{3}\b`)
	// The words of a status before the earlier decision that it changes.
	changes = regexp.MustCompile(`\b(?:[Rr]eplaces|Changes|Refines|Adds to|Continues|Says more) (?:[^.]*)`)
)

// The index has every decision once, under its own title.
func TestIndexOfDecisions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(), "docs", "adr", "[0-9]*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, file := range files {
		title, _, _ := strings.Cut(read(t, filepath.Join("docs/adr", filepath.Base(file))), "\n")
		number, title, _ := strings.Cut(strings.TrimPrefix(title, "# "), ": ")
		want = append(want, number+" "+filepath.Base(file)+" "+title)
	}
	for _, line := range decisionLine.FindAllStringSubmatch(read(t, "docs/adr/README.md"), -1) {
		got = append(got, line[1]+" "+line[2]+" "+line[3])
	}
	slices.Sort(got)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("docs/adr/README.md lacks %q", line)
		}
	}
	for i, line := range got {
		if !slices.Contains(want, line) || i > 0 && got[i-1] == line {
			t.Errorf("docs/adr/README.md has %q, which is no decision or there twice", line)
		}
	}
}

// If a decision changes an earlier one, the earlier one's status names it: readers of either find the other.
func TestChangedDecisionsSayBy(t *testing.T) {
	status := map[string]string{}
	for _, line := range decisionLine.FindAllStringSubmatch(read(t, "docs/adr/README.md"), -1) {
		found := decisionStatus.FindStringSubmatch(read(t, filepath.Join("docs/adr", line[2])))
		if found == nil {
			t.Errorf("%s has no status", line[2])
			continue
		}
		status[line[1]] = strings.Join(strings.Fields(found[1]), " ")
	}
	links := 0
	for number, said := range status {
		for _, part := range changes.FindAllString(said, -1) {
			for _, earlier := range decisionNumber.FindAllString(part, -1) {
				links++
				if !strings.Contains(status[earlier], number) && earlier < number {
					t.Errorf("%s has %q, and the status of %s does not name it: %s", number, part, earlier, status[earlier])
				}
			}
		}
	}
	if links < 10 {
		t.Errorf("only %d changes of decisions were found", links)
	}
}
