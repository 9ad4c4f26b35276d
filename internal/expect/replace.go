package expect

import (
	"os"
	"testing"
)

// Replaced writes a file in one step, by a rename, as a program that reads it again needs it.
func Replaced(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
