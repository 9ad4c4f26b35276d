// Package scene runs Weir on loopback for `weir demo` and the benchmarks: Envoys, the epp binary, simulated model servers
// and other processes, as one [Scene] that starts part by part and ends as a whole.
//
// Invariants:
//
//   - Everything listens on 127.0.0.1, at ports chosen by the kernel at bind time: no free port is looked up and
//     released first.
//   - No process or server of the scene is left after [Scene.Close], or after any end of this process (on Linux, by the
//     kernel's parent-death signal).
//   - A part that ends unexpectedly ends the scene's context, with a cause that names the part and its log: a run
//     without Weir is never taken for one with it.
//   - All files are in the scene's directory, which the caller removes or keeps.
package scene
