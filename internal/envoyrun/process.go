package envoyrun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
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

// cpu is the user and system time used so far by all threads, in steps of 10 ms while the process runs.
func (p *process) cpu() (time.Duration, error) {
	if p.ended() {
		state := p.cmd.ProcessState
		return state.UserTime() + state.SystemTime(), nil
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		if p.endsWithin(time.Second) { // between the look above and the reading
			return p.cpu()
		}
		return 0, err
	}
	return parseCPU(string(stat))
}

// parseCPU reads utime and stime, fields 14 and 15 of /proc/PID/stat (proc_pid_stat(5)), which count ticks of 1/100 s.
func parseCPU(stat string) (time.Duration, error) {
	const tick = 10 * time.Millisecond
	// The second field is the command's name in parentheses, and may itself have spaces and parentheses.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return 0, fmt.Errorf("unexpected /proc/PID/stat: %q", stat)
	}
	user, err := strconv.ParseInt(fields[utime], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/PID/stat: utime: %w", err)
	}
	system, err := strconv.ParseInt(fields[stime], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/PID/stat: stime: %w", err)
	}
	return time.Duration(user+system) * tick, nil
}
