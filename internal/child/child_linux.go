package child

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attribute adds the attributes of every child.
func attribute(a *syscall.SysProcAttr) { a.Setpgid, a.Pdeathsig = true, syscall.SIGKILL }

// stopped reports whether every thread of a process is stopped.
func stopped(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		// The state follows the name, which is in brackets and may itself contain brackets.
		if i := bytes.LastIndexByte(text, ')'); !bytes.HasPrefix(text[i+1:], []byte(" T")) {
			return false
		}
	}
	return true
}

// CPU returns a process's CPU time since its start, user and system, of all its threads, to the nanosecond, so that
// short rounds can be compared.
func CPU(pid int) (time.Duration, error) {
	// clock_getcpuclockid(3): the complement of the process ID above three bits, of which 2 is the scheduler's clock.
	const scheduler = 2
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &used); err != nil {
		return 0, fmt.Errorf("child: processor time of %d: %w", pid, err)
	}
	return time.Duration(used.Nano()), nil
}
