package modelsim

import (
	"syscall"
	"time"
)

// sleepThread blocks the thread for d, by the kernel's clock. A signal may end it early.
func sleepThread(d time.Duration) {
	if d <= 0 {
		return
	}
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil)
}
