package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/checkout"
)

// version is the version of the release.
const version = "1.2.3-test.1"

// The checkout, a repository with its files as the only commit, and both releases of it.
var (
	root, repository, commit string
	dist, again              string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weir-release-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755) // the image's user has to get in
	}
	if err == nil {
		err = makeTwice(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// elsewhere are the differences on another machine: a tag, and with it git's name of the commit; a program's file that
// git ignores there; settings of Go; the environment; modes.
const elsewhere = "git -c tag.gpgSign=false tag v1.9.9 && " +
	"echo 'package main; func init() { panic(0) }' >cmd/epp/own.go && echo /cmd/epp/own.go >>.git/info/exclude && " +
	"printf 'GOAMD64=v3\nGOFLAGS=-tags=own\n' >../goenv && " +
	"umask 077 && TZ=Asia/Tokyo GOENV=\"$PWD/../goenv\" GOARM64=v9.0 GOFLAGS=-buildvcs=auto "

// makeTwice makes the release in two folders, whose names differ in length, the second time as on another machine.
func makeTwice(dir string) (err error) {
	if root, err = checkout.Root(); err != nil {
		return err
	}
	if repository, err = commitOf(root, filepath.Join(dir, "repository")); err != nil {
		return err
	}
	if commit, err = output(repository, "git", "rev-parse", "HEAD"); err != nil {
		return err
	}
	for _, one := range []struct {
		to          *string
		clone, with string
	}{{&dist, filepath.Join(dir, "a"), ""}, {&again, filepath.Join(dir, "another", "folder"), elsewhere}} {
		for _, args := range [][]string{
			{"git", "clone", "--quiet", "--shared", "--no-checkout", repository, one.clone},
			{"git", "-C", one.clone, "checkout", "--quiet", "--detach", commit},
			{"sh", "-c", "cd '" + one.clone + "' && " + one.with + "make --silent release VERSION=" + version},
		} {
			if _, err := output(root, args...); err != nil {
				return err
			}
		}
		*one.to = filepath.Join(one.clone, "dist")
	}
	return nil
}

// commitOf makes a repository whose only commit has the files of a directory without ignored ones, and returns its
// path. So the directory needs no history and no git.
func commitOf(files, repository string) (string, error) {
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"-c", "core.autocrlf=false", "add", "--all"},
		{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgSign=false", "commit", "--quiet", "--message", "test"},
	} {
		if _, err := output(files, append([]string{"git", "--git-dir=" + repository, "--work-tree=" + files}, args...)...); err != nil {
			return "", err
		}
	}
	return repository, nil
}

// output runs a command and returns its output without the line's end. The error has the command's error output.
func output(dir string, args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, problems.String())
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// must is output for a command that has to succeed.
func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := output(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
