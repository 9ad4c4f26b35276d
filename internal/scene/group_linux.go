package scene

import "syscall"

// ownGroup keeps the terminal's Ctrl-C from a child, which this process ends in order, and asks the kernel to kill the
// child when the thread that starts it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
