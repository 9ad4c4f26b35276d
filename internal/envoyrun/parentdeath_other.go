//go:build !linux

package envoyrun

import "os/exec"

// dieWithParent does nothing: only Linux has a parent-death signal. Stop and the end of Start's context still end Envoy.
func dieWithParent(*exec.Cmd) {}
