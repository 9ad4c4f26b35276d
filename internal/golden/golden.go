// Package golden compares texts with files of the repository. The flag -rewrite of such a test writes its files anew:
//
//	go test ./internal/simulate -run TestGoldenTables -rewrite
package golden

import (
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// Check fails the test unless a file has the text.
func Check(t testing.TB, file, text string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil || text != string(want) {
		t.Errorf("%s differs (%v); if that is meant, run the test with -rewrite; it has now:\n%s", file, err, text)
	}
}
