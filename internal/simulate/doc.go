// Package simulate runs Weir's decisions in virtual time with simulated engines. It shows the effect of a configuration
// on a workload in seconds instead of hours, and the same in every run.
//
// It owns the clock, the workloads and the accounts of a simulation, and no rule of a decision: a [dispatch.Machine] on
// a [scheduling.Board] decides, and a [metering.Meter] charges, all made from a configuration as epp makes them. The
// engines are those of modelsim/engine.
//
// # The event loop
//
// There are four kinds of events: an engine's step (a first token, an end), the machine's timer, an arrival, and where
// bounds follow the engines, the reading of an engine's metrics each second. The earliest event goes first; at the same
// instant engines go before the timer, and the timer before arrivals; engines and arrivals keep their order. After each
// event the simulation answers that every preemptor's client is still connected, and carries the verdicts out: a
// granted request is submitted to its engine, and a preempted request is aborted there. Consequences at an engine are
// queued and handled before time advances. A run is over when there are no more arrivals, no engine has work and no
// request waits.
//
// # Long requests
//
// An engine cannot take a request whose prompt and answer are larger than its KV cache. If only some engines can take a
// request, it is confined to them, as by a subset; if none can, it is counted as too long and not offered.
//
// # Charges for comparison
//
// With [Options.Estimates] requests are charged by other estimates than the meter's, such as an oracle's. These may
// raise a charge while the answer grows. The final cost stays the meter's. Only costs change, not the requests' tokens
// in the stock.
//
// # What is left out
//
// The network takes no time. No client leaves early, and none retries after a rejection, except with the next request
// of a closed loop. A request's text has [BytesPerToken] bytes per token; with affinity it has a key for each KiB, made
// from its hashes. Engines do not cache answers, so the next request of a conversation finds the previous prompt in the
// cache, but not its answer. An answer's headers, which end preemption, come when the request is sent, or with the
// first token if the options say that Weir has a first-token gate.
//
// # Invariants
//
//   - The same options, configuration and workload give the same report, to the byte.
//   - Each request that arrives has exactly one outcome; at the end nothing is in flight at the machine, the board or an
//     engine. ([Run] returns an error otherwise, rather than figures.)
//   - Memory is bounded by the requests in flight, waiting and cached: requests are read from their source one by one,
//     and their figures are sums, counts and histograms.
package simulate
