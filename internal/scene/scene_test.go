package scene

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-epp/weir/internal/modelsim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell returns a command that runs a script until the scene ends.
func shell(s *Scene, script string) *exec.Cmd {
	return exec.CommandContext(s.Context(), "/bin/sh", "-c", script)
}

// A part that ends by itself ends the scene, and the cause names it.
func TestUnaskedEnd(t *testing.T) {
	s := New(t.Context(), t.TempDir())
	p, err := s.start("sleeper", shell(s, "sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Context().Done()
	if cause := context.Cause(s.Context()); !errors.Is(cause, ErrUnasked) || !strings.Contains(cause.Error(), "sleeper ended") {
		t.Error(cause)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Close ends all running parts. The error names a process that ignores SIGTERM.
func TestClose(t *testing.T) {
	s := New(t.Context(), t.TempDir())
	addresses, err := s.Models(2, modelsim.Instant())
	if err != nil || len(addresses) != 2 || addresses[0] == addresses[1] {
		t.Fatalf("model servers at %v, %v", addresses, err)
	}
	p, err := s.start("sleeper", shell(s, "exec sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(p.Pid(), 0); err == nil {
		t.Error("the process still runs")
	}
	if err := s.Close(); err != nil {
		t.Error("a second time:", err)
	}
}

// The end of the caller's context kills processes.
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := New(ctx, t.TempDir())
	p, err := s.start("stubborn", shell(s, "trap '' TERM; sleep 60 & wait"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-p.Done()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL) // its own child
}

// If a process ends before it listens, the error has the end of its log.
func TestFailedStart(t *testing.T) {
	s := New(t.Context(), t.TempDir())
	defer func() { _ = s.Close() }()
	p, err := s.start("failing", shell(s, "echo no luck; exit 1"))
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	err = s.await(p, filepath.Join(s.Dir(), "none"), &addresses)
	if err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Error(err)
	}
}

func TestAddressesFile(t *testing.T) {
	s := New(t.Context(), t.TempDir())
	defer func() { _ = s.Close() }()
	p, err := s.start("sleeper", shell(s, "exec sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.Dir(), "addresses")
	go func() { _ = WriteAddresses(file, []string{"127.0.0.1:1", "127.0.0.1:2"}) }()
	var addresses []string
	if err := s.await(p, file, &addresses); err != nil || len(addresses) != 2 {
		t.Errorf("%v, %v", addresses, err)
	}
}

func TestFindEPP(t *testing.T) {
	if _, err := FindEPP(filepath.Join(t.TempDir(), "epp")); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Error(err)
	}
	if path, err := FindEPP("/bin/sh"); err != nil || path != "/bin/sh" {
		t.Error(path, err)
	}
}
