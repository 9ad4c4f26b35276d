// Package integration tests Weir as a black box on the wire: a real Envoy, the real epp binary, simulated model
// servers and real HTTP clients. It knows nothing that is not exported or visible from outside; the state of Weir is
// read from its metrics. A missing part is an error with the command that gets it, never a skip.
//
// Time decides nothing here: tests wait for states (metrics, the simulators' statistics) and count grants; where they
// bound a time, the bound is generous. So most tests run in parallel, each with its own processes and ports. Those that
// measure shares or the spread of times do not: they run first, one after the other.
package integration
