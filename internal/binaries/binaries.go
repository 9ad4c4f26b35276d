// Package binaries builds epp and weir for tests that run them as processes. A test package calls Run in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(binaries.Run(m, binaries.EPP)) }
//
// and finds the program at binaries.Path(binaries.EPP).
package binaries

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The commands of this module.
const (
	EPP  = "epp"
	Weir = "weir"
)

const commands = "github.com/weir-epp/weir/cmd/"

// dir contains what Run has built, for as long as the tests run.
var dir string

// Run builds the commands, runs the tests and removes what it has built. It returns the exit code, which is 1 if a
// command cannot be built.
func Run(m *testing.M, names ...string) int {
	var err error
	if dir, err = os.MkdirTemp("", "weir-binaries-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build(dir, names); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds commands into a directory. The error has the compiler's messages.
func build(dir string, names []string) error {
	arguments := []string{"build", "-o", dir + "/"}
	for _, name := range names {
		arguments = append(arguments, commands+name)
	}
	if out, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("binaries: building %v: %w\n%s", names, err, out)
	}
	return nil
}

// Path returns the path of a command that Run has built.
func Path(name string) string { return filepath.Join(dir, name) }

// Dir returns the directory of the commands that Run has built.
func Dir() string { return dir }
