package child

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell starts a script that keeps running after its first line, and returns after that line.
func shell(t *testing.T, script string) *Process {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return p
}

// wantGone checks that the process was reaped.
func wantGone(t *testing.T, p *Process) {
	t.Helper()
	if !p.Ended() {
		t.Error("it runs on")
	}
	if err := syscall.Kill(p.Pid(), 0); err != syscall.ESRCH {
		t.Errorf("process %d: %v, want none", p.Pid(), err)
	}
}

func TestStop(t *testing.T) {
	p := shell(t, "echo; exec sleep 60")
	if p.Ended() {
		t.Error("it has ended already")
	}
	if orderly, err := p.Stop(time.Minute); !orderly || err != nil {
		t.Errorf("orderly: %t, %v", orderly, err)
	}
	wantGone(t, p)
	if got := p.State().String(); got != "signal: terminated" {
		t.Errorf("state is %q", got)
	}
	if orderly, err := p.Stop(0); !orderly || err != nil {
		t.Errorf("a second time: orderly: %t, %v", orderly, err)
	}
}

// A child that ignores SIGTERM is killed.
func TestStopStubborn(t *testing.T) {
	p := shell(t, "trap '' TERM; echo; while :; do sleep 0.1; done")
	if orderly, err := p.Stop(50 * time.Millisecond); orderly || err != nil {
		t.Errorf("orderly: %t, %v", orderly, err)
	}
	wantGone(t, p)
}

// Signals to an ended child are no error.
func TestEndedByItself(t *testing.T) {
	p, err := Start(exec.Command("/bin/sh", "-c", "exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	wantGone(t, p)
	if code := p.State().ExitCode(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := Start(exec.Command("/nowhere/none")); err == nil {
		t.Error("no error")
	}
}

// The clock measures work much more finely than the 10 ms of /proc.
func TestCPU(t *testing.T) {
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 2*time.Millisecond; {
	}
	after, err := CPU(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("%v, then %v: %v", before, after, err)
	}
	if _, err := CPU(1 << 22); err == nil {
		t.Error("no process has a number so high")
	}
}

// After Signal returns, a stopped child has stopped with all its threads. It continues after the next signal.
func TestStopSignal(t *testing.T) {
	p, err := Start(exec.Command("sh", "-c", "while :; do :; done"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Kill() }()
	for range 20 {
		if err := p.Signal(syscall.SIGSTOP); err != nil || !stopped(p.Pid()) {
			t.Fatalf("it runs: %v", err)
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
}
