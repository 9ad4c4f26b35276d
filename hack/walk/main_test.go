package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A walk has the files that a test enters, from the first call of the function on, and counts the returns.
func TestWalk(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module walked\n",
		"a.go":      "package walked\n\nfunc Setup() { two() }\nfunc Begin() { one(); two(); two(); one() }\nfunc one() {}\n",
		"b.go":      "package walked\n\nfunc two() { println(\"not a mark\") }\n",
		"a_test.go": "package walked\n\nimport \"testing\"\n\nfunc TestIt(*testing.T) { Setup(); Begin() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out bytes.Buffer
	if err := walk(&out, ".", "Begin", "TestIt"); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a.go\nb.go\na.go\n2 files, 3 entries, 1 returns\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, missing := range [][2]string{{"Begin", "TestNone"}, {"Nothing", "TestIt"}} {
		if err := walk(&out, ".", missing[0], missing[1]); err == nil {
			t.Errorf("a walk from %s in %s succeeded", missing[0], missing[1])
		}
	}
}
