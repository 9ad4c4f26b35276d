// Package simulate runs Weir's decisions in virtual time before simulated engines. It shows the effect of a
// configuration on a workload, in seconds instead of hours, the same in every run.
//
// It owns the clock, the workloads and the accounts of a simulation, and no rule of a decision: the decisions are
// those of a [dispatch.Machine] on a [scheduling.Board], the charges those of a [metering.Meter], all made from a
// configuration as epp makes them; the engines are those of modelsim/engine.
//
// # The event loop
//
// There are four kinds of events: an engine does something (a first token, an end), the machine's timer is due, a
// request arrives, and where bounds follow the engines, an engine's metrics are read, each second. The earliest goes
// first; at the same instant engines go before the timer, and the timer before arrivals; engines and arrivals keep
// their order. After each event the machine's question, whether a preemptor's client is still there, is answered with
// yes; the verdicts are carried out: a granted request is submitted to its engine, a preempted one is aborted there.
// Its consequences at an engine are queued, and handled before time goes on. A run is over when there are no more
// arrivals, no engine has work and no request waits.
//
// # Long requests
//
// An engine cannot take a request whose prompt and answer are larger than its KV cache. Where only some engines can, the
// request is confined to these, as by a subset; where none can, it is counted as too long, and not offered.
//
// # Charges for comparison
//
// With [Options.Estimates] requests are charged by other estimates than the meter's, such as an oracle's, and on while
// their answers grow, where the estimates say so. The final cost stays the meter's. Only costs are changed, not the
// tokens that requests take of the stock.
//
// # What is left out
//
// The network takes no time. No client leaves early, or comes back after a rejection, except with the next request of a
// closed loop. A request's text has [BytesPerToken] bytes per token; with affinity it has a key for each KiB, made of
// its hashes. Answers are not cached by engines, so the next request of a conversation finds the prompt of the one
// before it, and not its answer. An answer's headers, which end preemption, come when the request is sent, or with the
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
