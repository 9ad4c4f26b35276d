//go:build !linux

package child

import (
	"errors"
	"syscall"
	"time"
)

// attributes lack the parent-death signal, which only Linux has.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// CPU returns an error: only on Linux can the processor time of a process be read.
func CPU(int) (time.Duration, error) {
	return 0, errors.New("child: processor time of another process: only on Linux")
}
