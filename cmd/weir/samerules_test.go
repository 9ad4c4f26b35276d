package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/cmd/epp/app"
	"github.com/weir-epp/weir/internal/binaries"
)

// `weir config validate` reports the errors with which epp would not start, word for word: for a bad value of every key
// of the document.
func TestValidateSaysWhatEPPSays(t *testing.T) {
	for _, file := range badFiles(t) {
		var stdout, stderr, eppStdout, eppStderr bytes.Buffer
		code := run([]string{"config", "validate", file}, &stdout, &stderr)
		if code == 0 {
			t.Fatalf("%s is valid, so epp would start", file)
		}
		eppCode := app.Main(startOf(file), &eppStdout, &eppStderr)
		checkSame(t, file, code, eppCode, stdout.String()+stderr.String(), eppStdout.String()+eppStderr.String())
	}
}

// The same check by the two programs, for some of the files.
func TestProgramsSayTheSame(t *testing.T) {
	files := badFiles(t)
	for i := 0; i < len(files); i += len(files) / 5 {
		weir := exec.Command(binaries.Path(binaries.Weir), "config", "validate", files[i])
		epp := exec.Command(binaries.Path(binaries.EPP), startOf(files[i])...)
		said, _ := weir.CombinedOutput()
		eppSaid, _ := epp.CombinedOutput()
		checkSame(t, files[i], weir.ProcessState.ExitCode(), epp.ProcessState.ExitCode(), string(said), string(eppSaid))
	}
}

// startOf are flags with which epp would start with a valid file.
func startOf(file string) []string {
	return []string{
		"--endpoints=192.0.2.1:1", "--bind-address=127.0.0.1", "--grpc-port=0", "--grpc-health-port=0", "--metrics-port=0",
		"--debug-port=0", "--config-file=" + file,
	}
}

// checkSame compares the outputs of both programs, without their names.
func checkSame(t *testing.T, file string, code, eppCode int, said, eppSaid string) {
	t.Helper()
	rest, ok := strings.CutPrefix(said, "weir config: "+file+": invalid")
	eppRest, eppOK := strings.CutPrefix(eppSaid, "epp: --config-file: "+file+": invalid")
	if !ok || !eppOK || rest != eppRest || code != 1 || eppCode != 1 {
		text, _ := os.ReadFile(file)
		t.Errorf("%s\nweir %d: %s\nepp %d: %s", text, code, said, eppCode, eppSaid)
	}
}

// badFiles are the files with the bad values that internal/config's tests have for every key, and one with several.
func badFiles(t *testing.T) []string {
	t.Helper()
	texts := []string{"passOn: drop\nspam: 1\nlimits:\n  maxFlows: 0\nflows: { order: edf }\nscheduling: { fallbacks: 9 }\n"}
	for _, name := range []string{"badkeys", "ranges"} {
		text, err := os.ReadFile(filepath.FromSlash("../../internal/config/testdata/" + name + ".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var values []struct {
			Bad string `yaml:"bad"`
		}
		if err := yaml.Unmarshal(text, &values); err != nil || len(values) < 80 {
			t.Fatalf("%s: %d values, %v", name, len(values), err)
		}
		for _, value := range values {
			texts = append(texts, value.Bad)
		}
	}
	var files []string
	dir := t.TempDir()
	for i, text := range texts {
		if !strings.Contains(text, "profile:") {
			text = "profile: wfq\n" + text // as in internal/config's tests
		}
		file := filepath.Join(dir, strconv.Itoa(i)+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
