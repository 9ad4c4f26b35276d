//go:build !linux

package scene

import "syscall"

// ownGroup keeps the terminal's Ctrl-C from a child, which this process ends in order.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
