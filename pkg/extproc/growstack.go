package extproc

// growStack gives its goroutine a stack of 8 KiB, which a stream needs, while there is little to copy. Go begins with 2
// or 4 KiB, and doubles the stack when a call does not fit: it then copies the stack and looks up each frame. Deep in
// gRPC's and Weir's calls that takes a tenth of a request's instructions, here a hundredth.
//
//go:noinline
func growStack(i int) byte {
	var frame [3300]byte
	return frame[i]
}
