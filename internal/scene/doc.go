// Package scene runs Weir on loopback for `weir demo` and the benchmarks: Envoys, the epp binary, simulated model servers
// and other processes, as one [Scene] that starts part by part and ends as a whole.
//
// Invariants:
//
//   - Everything listens on 127.0.0.1, at ports that the kernel chose for the listener: no free port is looked up and
//     released first.
//   - Nothing that the scene started is left after [Scene.Close], or after the end of this process, however it ends (on
//     Linux, by the kernel's parent-death signal).
//   - A part that ends unasked ends the scene's context, with a cause that names it and its log: a run without Weir is
//     never taken for one with it.
//   - All files are in the scene's directory, which is its caller's to remove or keep.
package scene
