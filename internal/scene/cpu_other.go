//go:build !linux

package scene

import (
	"errors"
	"time"
)

// CPU is the processor time that a process has used; only Linux tells it.
func CPU(int) (time.Duration, error) {
	return 0, errors.New("scene: processor time of another process: only on Linux")
}
