package child

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attribute adds what every child has.
func attribute(a *syscall.SysProcAttr) { a.Setpgid, a.Pdeathsig = true, syscall.SIGKILL }

// CPU returns the processor time that a process has used since its start, user and system, of all its threads, to the
// nanosecond: short rounds can be compared by it.
func CPU(pid int) (time.Duration, error) {
	// clock_getcpuclockid(3): the complement of the process ID above three bits, of which 2 is the scheduler's clock.
	const scheduler = 2
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &used); err != nil {
		return 0, fmt.Errorf("child: processor time of %d: %w", pid, err)
	}
	return time.Duration(used.Nano()), nil
}
