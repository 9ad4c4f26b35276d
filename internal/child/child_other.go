//go:build !linux

package child

import (
	"errors"
	"syscall"
	"time"
)

// attribute adds the attributes of every child. Only Linux has the parent-death signal.
func attribute(a *syscall.SysProcAttr) { a.Setpgid = true }

// stopped returns true: only on Linux can the state of threads be read.
func stopped(int) bool { return true }

// CPU returns an error: only on Linux can the processor time of a process be read.
func CPU(int) (time.Duration, error) {
	return 0, errors.New("child: processor time of another process: only on Linux")
}
