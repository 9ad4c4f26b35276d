// Package integration tests Weir as a black box on the wire: a real Envoy, the real epp binary, simulated model servers
// and real HTTP clients. It uses only what is exported or visible from outside, and reads the state of Weir from its
// metrics. A missing part is an error with the command that gets it, never a skip.
//
// No result depends on time: tests wait for states (metrics, the simulators' statistics) and count grants; bounds on
// times are generous. So most tests run in parallel, each with its own processes and ports. Tests that measure shares
// or the spread of times run first, one after the other.
package integration
