package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// eppBinary is built once for all tests.
var eppBinary string

// TestMain also is what the benchmarks start again under another name: this binary stands for weir.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "noop-processor" || os.Args[1] == "model-servers") {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "weir-test")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		eppBinary = filepath.Join(dir, "epp")
		build := exec.Command("go", "build", "-o", eppBinary, "github.com/weir-epp/weir/cmd/epp")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "building epp:", err)
			return 1
		}
		return m.Run()
	}())
}

// output is what a command writes, while it writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// waitFor waits until the text was written.
func (o *output) waitFor(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(o.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q was not written:\n%s", text, o.String())
		}
	}
}

// started is a command that runs in this process, with a temporary folder of its own.
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

// interrupt is Ctrl-C. The command must be past its first words, or it hits the test itself.
func (c *started) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the exit code, and checks that nothing but logs to keep is left.
func (c *started) ends(t *testing.T, want int) {
	t.Helper()
	select {
	case code := <-c.code:
		if code != want {
			t.Errorf("exit code %d, want %d\n%s\n%s", code, want, c.stdout.String(), c.stderr.String())
		}
	case <-time.After(time.Minute):
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

// children are the processes that this one started and that still run.
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
