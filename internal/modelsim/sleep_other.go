//go:build !linux

package modelsim

import "time"

// sleepThread sleeps as precisely as the runtime can.
func sleepThread(d time.Duration) { time.Sleep(d) }
