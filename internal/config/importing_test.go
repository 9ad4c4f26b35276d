package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/golden"
)

// importing has the importer of each system with its files in testdata, at least so many, and further texts for
// fuzzing.
var importing = []struct {
	files string
	least int
	read  func([]byte) (Imported, error)
	texts []string
}{
	{"dynamo/*.yaml", 4, ImportDynamo, []string{
		"models: { \"\": { policy_classes: [ { name: a, quantum: 1 } ], default_policy_family: a }, \"a.b\": null }",
	}},
	{"litellm/*.yaml", 2, ImportLiteLLM, nil},
	{"llm-d/*.yaml", 2, ImportLLMD, nil},
	{"mindrouter/*.env", 3, ImportMindRouter, []string{"export \xff=\"\nA='b\nSCHEDULER_FAIRNESS_WINDOW=1'"}},
	{"production-stack/*.args", 2, ImportProductionStack, nil},
	{"smg/*.yaml", 0, ImportSMG, []string{ // its documents are those of TestImportSMG
		"classes: { interactive: { reserved_floor: 128, queue_timeout_secs: 30, can_preempt: true } }",
		"priority_scheduler: { tenant_policies: { \"header:a\": { max_class: bulk } }, capacity: 3 }",
		"classes: &c { bulk: &b { reserved_per_slot: 0.000001 }, default: *b, system: { reserved: 65535 } }",
		"tenant_policies: { \"\\x85\": { max_class: system }, \"null\": { max_class: bulk } }\ntenant_header_name: X",
	}},
}

// contents returns the text of a file of the repository.
func contents(t testing.TB, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantReadsBack checks that a document is valid, and the same after reading its own text. It returns that text.
func wantReadsBack(t *testing.T, d Document) string {
	t.Helper()
	written, err := d.MarshalOverlay()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Load(source(string(written)))
	if err != nil || !reflect.DeepEqual(back, d) {
		t.Fatalf("read back: %v\ngot  %+v\nwant %+v\nby\n%s", err, back, d, written)
	}
	return string(written)
}

// wantProblems reads each text, which has exactly these problems, in any order.
func wantProblems(t *testing.T, read func([]byte) (Imported, error), texts map[string][]string) {
	t.Helper()
	for text, want := range texts {
		_, err := read([]byte(text))
		got := problemsOf(t, err)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngot\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// wantNamed checks that a text has each field of another system's file.
func wantNamed(t *testing.T, in, text string, sections ...reflect.Type) {
	t.Helper()
	for _, section := range sections {
		for _, name := range fieldNames(section) {
			if !strings.Contains(text, name) {
				t.Errorf("%s does not name %s", in, name)
			}
		}
	}
}

// Each file of another system in testdata gives the document, the engines and the notes beside it; the document reads
// back. No secret is printed.
func TestImports(t *testing.T) {
	for _, system := range importing {
		files, err := filepath.Glob(filepath.Join("testdata", filepath.FromSlash(system.files)))
		if err != nil || len(files) < system.least {
			t.Fatalf("%s: %d files, %v", system.files, len(files), err)
		}
		for _, file := range files {
			im, err := system.read([]byte(contents(t, file)))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			wantReadsBack(t, im.Document)
			written, err := im.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			out := bytes.NewBuffer(written)
			if len(im.Engines) > 0 {
				engines, err := MarshalEngines(im.Engines)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(out, "---\n%s", engines)
			}
			for _, note := range im.Notes {
				fmt.Fprintf(out, "# note: %s\n", note)
			}
			if strings.Contains(out.String(), "secret") {
				t.Errorf("%s: a secret is printed:\n%s", file, out)
			}
			golden.Check(t, strings.TrimSuffix(file, filepath.Ext(file))+".txt", out.String())
		}
	}
}

// An import returns for any file, and its result is a valid document that reads back from its own text.
func FuzzImports(f *testing.F) {
	for i, system := range importing {
		files, _ := filepath.Glob(filepath.Join("testdata", filepath.FromSlash(system.files)))
		for _, file := range files {
			f.Add(uint(i), []byte(contents(f, file)))
		}
		for _, text := range system.texts {
			f.Add(uint(i), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, system uint, text []byte) {
		im, err := importing[system%uint(len(importing))].read(text)
		if err != nil {
			return
		}
		wantReadsBack(t, im.Document)
		if _, err := im.Marshal(); err != nil {
			t.Errorf("%v of %q", err, text)
		}
	})
}
