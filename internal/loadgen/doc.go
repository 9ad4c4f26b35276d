// Package loadgen sends bounded HTTP load to a loopback address and measures what its users would feel: the time to
// the first token, the whole time, rejections with their reasons, by tenant.
//
// A [Plan] holds [Workload]s. A workload is one tenant's requests ([Template]) and the law of their arrivals:
// [ClosedLoop] (each worker sends its next request when the last one is answered), [OpenLoop] (requests arrive at a
// rate, whatever the answers do) or [Schedule] (each has its time). [Run] carries a plan out and returns a [Report];
// [Summarise] reduces it to counts, throughput and exact percentiles; [WriteTable] and [Figure] show it. [Interleave]
// repeats scenarios in turn, so that other load of the machine falls on all of them alike.
//
// Invariants:
//
//   - Every workload is bounded in requests and in time; a plan without both is an error, and nothing is sent.
//   - No load leaves the machine unless [ClientConfig].Anywhere says so: a [Client] takes a loopback address or none.
//   - Memory is bounded: the results of a workload are one slice, allocated before its first request and written in
//     place, each slot by one goroutine; no answer's body is kept.
//   - An open loop measures from the moment at which a request was due, not from its sending, and a request that finds
//     no room is recorded as [ErrUnsent] rather than sent late: a slow server cannot hide by slowing the load.
//   - Every claimed request has exactly one [Result], and Run returns only after its goroutines have.
//   - The same seed gives the same arrivals.
package loadgen
