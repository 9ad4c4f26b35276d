package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/version"
)

// TestMain lets the test binary act as weir, since the benchmarks start themselves under another name.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "noop-processor" || os.Args[1] == "model-servers") {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(binaries.Run(m, binaries.EPP, binaries.Weir))
}

// eppBuilt returns the flag with the path of the epp built for the tests.
func eppBuilt() string { return "--epp=" + binaries.Path(binaries.EPP) }

// commandTest is a command that ends at once, with its exit code and some of its expected output.
type commandTest struct {
	args           []string
	code           int
	stdout, stderr []string
}

func checkCommands(t *testing.T, tests map[string]commandTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(test.args, &stdout, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("%q is not in stdout:\n%s", want, stdout.String())
				}
			}
			for _, want := range test.stderr {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("%q is not in stderr:\n%s", want, stderr.String())
				}
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	checkCommands(t, map[string]commandTest{
		"no arguments":    {nil, 2, nil, []string{"Commands:", "weir config"}},
		"help":            {[]string{"help"}, 0, []string{"Commands:", "weir version", "import"}, nil},
		"version":         {[]string{"version"}, 0, []string{"weir " + version.Info().String()}, nil},
		"version as epp":  {[]string{"--version"}, 0, []string{"weir " + version.Info().String()}, nil},
		"version of what": {[]string{"version", "demo"}, 2, nil, []string{`weir version: "demo": takes no arguments`}},
		"help for config": {[]string{"help", "config"}, 0, []string{"weir config validate [--profile NAME] FILE", "smg-priority"}, nil},
		"help for demo":   {[]string{"help", "demo"}, 0, []string{"weir demo [flags]", "--keep-for"}, nil},
		"help for bench":  {[]string{"help", "bench"}, 0, []string{"weir bench flood [flags]"}, nil},
		"help for flood":  {[]string{"help", "bench", "flood"}, 0, []string{"--samples"}, nil},
		"help of version": {[]string{"help", "version"}, 0, []string{"weir version"}, nil},
		"--help for demo": {[]string{"--help", "demo"}, 0, []string{"weir demo [flags]"}, nil},
		"help for nobody": {[]string{"help", "noop-processor"}, 2, nil, []string{`unknown command "noop-processor"`}},
		"help for help":   {[]string{"help", "help"}, 0, []string{"Commands:"}, nil},
	})
}

// output collects what a command writes while it runs.
type output struct{ child.Log }

// waitFor waits until the text has been written.
func (o *output) waitFor(t *testing.T, text string) {
	t.Helper()
	expect.Within(t, 3*time.Minute, fmt.Sprintf("%q is written", text), func() error {
		if !strings.Contains(o.String(), text) {
			return errors.New(o.String())
		}
		return nil
	})
}

// started is a command that runs in this process, with its own temporary directory.
type started struct {
	stdout, stderr output
	code           chan int
	temporary      string
}

func begin(t *testing.T, arguments ...string) *started {
	t.Helper()
	c := &started{code: make(chan int, 1), temporary: t.TempDir()}
	t.Setenv("TMPDIR", c.temporary)
	go func() { c.code <- run(arguments, &c.stdout, &c.stderr) }()
	return c
}

// interrupt sends Ctrl-C. The command must have written something, so that it handles the signal instead of the test.
func (c *started) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the exit code, and checks that only kept logs are left.
func (c *started) ends(t *testing.T, want int) {
	t.Helper()
	select {
	case code := <-c.code:
		if code != want {
			t.Errorf("exit code %d, want %d\n%s\n%s", code, want, c.stdout.String(), c.stderr.String())
		}
	case <-time.After(3 * time.Minute):
		t.Fatalf("still runs\n%s\n%s", c.stdout.String(), c.stderr.String())
	}
	left, err := os.ReadDir(c.temporary)
	if err != nil {
		t.Fatal(err)
	}
	if kept := strings.Contains(c.stderr.String(), "logs are kept"); kept != (len(left) > 0) {
		t.Errorf("left in the temporary folder: %v", left)
	}
	if children := children(t); len(children) > 0 {
		t.Errorf("processes are left: %v", children)
	}
}

// children returns the running child processes of this one.
func children(t *testing.T) []string {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended has no children
		}
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}
