package datastore

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/endpoints.md lists every field and no other, and each file that it shows is valid.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/endpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, row[1])
	}
	want := slices.Sorted(slices.Values(endpointFields))
	if slices.Sort(rows); !slices.Equal(rows, want) {
		t.Errorf("the page has rows for %q, the file has fields %q", rows, want)
	}
	shown := 0
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		file, _, _ := strings.Cut(block, "```")
		if _, err := DecodeEndpoints([]byte(file)); err != nil {
			t.Errorf("%s\n%v", file, err)
		}
		shown++
	}
	if shown != 2 {
		t.Errorf("%d files are shown", shown)
	}
}
