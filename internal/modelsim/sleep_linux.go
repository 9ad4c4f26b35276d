package modelsim

import (
	"syscall"
	"time"
)

// sleepThread blocks the thread for so long, by the kernel's clock. It may return early, at a signal.
func sleepThread(d time.Duration) {
	if d <= 0 {
		return
	}
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil)
}
