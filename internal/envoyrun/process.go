package envoyrun

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is a child process that is reaped as soon as it ends, whoever ends it.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been reaped; then cmd.ProcessState is set
}

// spawn starts cmd from a goroutine that stays locked to its thread until the process has been reaped (see the package
// comment).
func spawn(cmd *exec.Cmd) (*process, error) {
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// signal sends a signal; to a process that has ended it is nothing.
func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// endsWithin waits for the process to be reaped, at most for d.
func (p *process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}
