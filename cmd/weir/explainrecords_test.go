package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of records from a killed writer ends within a line, which the next writer continues. Whole records are
// explained, and the damaged line is named. A file without a record is an error.
func TestTornLinesAreLeftOut(t *testing.T) {
	const one, two = `{"number":1,"flow":"a","outcome":"dispatched","waitedSeconds":2}`, `{"number":2,"flow":"a","outcome":"dispatched","waitedSeconds":1}`
	for _, c := range []struct {
		text, stderr  string
		code, stories int
	}{
		{one + "\n" + two + "\n", "", 0, 2},
		{one + "\n" + two, "", 0, 2},
		{one + "\n" + two[:20], "1 lines are incomplete and left out; the last one is line 2\n", 0, 1},
		{one + "\n" + two[:20] + one + "\n" + two + "\n" + one[:1], "2 lines are incomplete and left out; the last one is line 4\n", 0, 2},
		{one[:20], "line 1: ", 1, 0},
		{one + "\n{" + strings.Repeat(" ", mostRecord), "line 2: ", 1, 0},
	} {
		file := filepath.Join(t.TempDir(), "decisions.json")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		code := runExplain([]string{file, "-o", "json"}, &stdout, &stderr)
		if stories := strings.Count(stdout.String(), `"outcome":"dispatched"`); code != c.code || stories != c.stories {
			t.Errorf("%.200s: code %d, %d records: %s", c.text, code, stories, stdout.String())
		}
		if c.stderr == "" && stderr.Len() > 0 || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%.200s: %s", c.text, stderr.String())
		}
	}
}
