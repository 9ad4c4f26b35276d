package docs

import (
	"strings"
	"testing"
)

// parityPages are the pages that say, row by row, which test shows that Weir does what another system documents.
var parityPages = []string{"docs/mindrouter.md"}

// Each row of a table whose last column is called "test" names a test, or a decision against it. (TestCodeExists looks for the
// tests.)
func TestParityRowsNameTests(t *testing.T) {
	for _, page := range parityPages {
		rows, inTable := 0, false
		for line := range strings.Lines(read(t, page)) {
			line = strings.TrimSpace(line)
			cells := strings.Split(strings.Trim(line, "|"), "|")
			last := strings.TrimSpace(cells[len(cells)-1])
			switch {
			case !strings.HasPrefix(line, "|"):
				inTable = false
			case last == "test":
				inTable = true
			case inTable && !strings.HasPrefix(last, "---"):
				if rows++; testName.FindString(last) == "" && !strings.Contains(last, "ADR 0") {
					t.Errorf("%s: no test: %s", page, line)
				}
			}
		}
		if rows < 10 {
			t.Errorf("%s: %d rows name tests", page, rows)
		}
	}
}
