// Package loadgen sends bounded HTTP load to a loopback address and measures the users' experience by tenant: the time
// to the first token, the whole time, and rejections with their reasons.
//
// A [Plan] holds [Workload]s. A workload is one tenant's requests ([Template]) and the law of their arrivals:
// [ClosedLoop] (each worker sends its next request when the last one is answered), [OpenLoop] (requests arrive at a
// fixed rate, independent of answers) or [Schedule] (each request has its time). [Run] carries a plan out and returns a
// [Report]; [Summarise] reduces it to counts, throughput and exact percentiles; [WriteTable] and [Figure] show it.
// [Interleave] repeats scenarios in turn, so that other load on the machine affects all of them alike.
//
// Invariants:
//
//   - Every workload is bounded in requests and in time; a plan without both is an error, and nothing is sent.
//   - No load leaves the machine unless [ClientConfig].Anywhere says so: otherwise a [Client] takes only loopback
//     addresses.
//   - Memory is bounded: the results of a workload are one slice, allocated before its first request and written in
//     place, each slot by one goroutine; no answer's body is kept.
//   - An open loop measures from the moment when a request was due, not from its sending, and records a request without
//     room as [ErrUnsent] rather than sending it late: a slow server cannot hide by slowing the load.
//   - Every claimed request has exactly one [Result], and Run returns only after its goroutines have.
//   - The same seed gives the same arrivals.
package loadgen
