package extproc

import (
	"testing"
	"unsafe"
)

// Once its stack is grown, a stream has 5 KiB for its calls before the stack moves again.
func TestStackIsGrownOnce(t *testing.T) {
	moved := make(chan bool)
	for range 100 {
		go func() {
			var here byte
			growStack(0)
			before := uintptr(unsafe.Pointer(&here))
			useStack(0)
			moved <- uintptr(unsafe.Pointer(&here)) != before
		}()
		if <-moved {
			t.Fatal("calls of 5 KiB moved a stack that was grown")
		}
	}
}

//go:noinline
func useStack(i int) byte {
	var frame [5 << 10]byte
	return frame[i]
}
