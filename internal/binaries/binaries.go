// Package binaries builds epp and weir for tests that run them as processes. A test package calls Run in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(binaries.Run(m, binaries.EPP)) }
//
// and finds the program at binaries.Path(binaries.EPP).
package binaries

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weir-epp/weir/internal/checkout"
)

// The commands of this module.
const (
	EPP  = "epp"
	Weir = "weir"
)

const commands = "github.com/weir-epp/weir/cmd/"

// dir has the commands built by Run, while the tests run.
var dir string

// Run builds the commands, runs the tests and removes its copies of the commands. It returns the exit code, which is 1
// if a command cannot be built.
func Run(m *testing.M, names ...string) int {
	root, err := checkout.Root()
	if err == nil {
		dir, err = os.MkdirTemp("", "weir-binaries-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build(filepath.Join(root, ".cache", "binaries"), dir, names); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds commands in shared, where go build relinks only outdated ones, and copies them to dir, where no later
// build changes them. Builds of other processes wait. The error has the compiler's messages.
func build(shared, dir string, names []string) (err error) {
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return err
	}
	lock, err := os.Create(filepath.Join(shared, "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("binaries: locking %s: %w", lock.Name(), err)
	}
	arguments := []string{"build", "-ldflags=-s -w", "-o", shared + "/"}
	for _, name := range names {
		arguments = append(arguments, commands+name)
	}
	if out, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("binaries: building %v: %w\n%s", names, err, out)
	}
	for _, name := range names {
		if err := duplicate(filepath.Join(shared, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// duplicate copies a program.
func duplicate(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// Path returns the path of a command built by Run.
func Path(name string) string { return filepath.Join(dir, name) }

// Dir returns the directory of the commands built by Run.
func Dir() string { return dir }
