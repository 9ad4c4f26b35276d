// Package child starts processes that do not outlive this one, and measures their CPU time.
//
// On Linux a child asks the kernel to kill it when its parent dies. The kernel ties that signal to the thread that
// forked the child, not to the process: if that thread ended (as when a goroutine returns while locked to it), the
// child would be killed unexpectedly. So one goroutine, locked to its thread for the child's life, forks the child,
// waits for it and reaps it after any end.
package child

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a running child, or one that has ended. Its methods may be called from any goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child was reaped; then cmd.ProcessState is set
}

// Start starts cmd in a process group of its own, out of reach of the terminal's Ctrl-C: this process ends it in order.
// It adds to cmd.SysProcAttr.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	attribute(cmd.SysProcAttr)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // State has the result
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Pid returns the process ID, also of a child that has ended.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State returns the child's exit state. It may be called once Done is closed.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Ended reports whether the child has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal. For an ended child it does nothing. After SIGSTOP it waits, on Linux and for at most 10 s,
// until every thread has stopped: the kernel stops each thread only when it next runs, and a thread may do much until
// then.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if s == syscall.SIGSTOP {
		for end := time.Now().Add(10 * time.Second); !p.Ended() && !stopped(p.Pid()) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// Kill ends the child at once (SIGKILL) and returns when it has ended.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop asks the child to end (SIGTERM), and kills it if it still runs after grace. It returns when the child is gone, and
// reports whether it ended by itself.
func (p *Process) Stop(grace time.Duration) (orderly bool, err error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return false, errors.Join(err, p.Kill())
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return true, nil
	case <-timer.C:
		return p.Ended(), p.Kill()
	}
}
