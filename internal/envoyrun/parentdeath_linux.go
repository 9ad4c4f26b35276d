package envoyrun

import (
	"os/exec"
	"syscall"
)

// dieWithParent asks the kernel to kill the process when the thread that starts it ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
