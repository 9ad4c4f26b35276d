// Package metering decides the charge of requests in tokens, and its time. It owns the charge of each request and the
// estimates that are learned from usage. Its leaves are pkg/estimate, which predicts, and pkg/extproc/usage, which
// finds the usage in responses. It is pure but for the lock of Meter: no goroutine, clock or random source, and no map
// decides anything.
//
// # When
//
//	Begin      at dispatch: the estimate, in cost and in tokens of the stock
//	Outgrown   while the answer streams: an answer longer than its charge raises both
//	AtLeast    at a report before the end: no less than that
//	Meter.End  once, at the end: the final cost
//
// # The final cost (finalcharge.go)
//
// End takes the first of these that applies:
//
//	usage known, answer whole       cost = weights · usage                                   ByUsage
//	reached no engine               cost = 1                                                 ByNothing
//	refused by the engine           cost = Estimator.Refused: estimate, bytes and time       ByRoom
//	any other end without usage     cost = Estimator.Unfinished: estimate, bytes and time    ByTime
//
// Usage from Envoy goes before usage that Weir has read itself. The report of an answer that broke off is not its usage
// but a lower limit; its figures of the prompt are exact.
//
// A charge whose prompt was fixed (Charge.Fix) costs the uncached tokens at its arrival, and the answer: as it was reported
// (ByUsage), as it was estimated or seen (ByTime), or none.
//
// # Invariants
//
//   - Only ByUsage and ByTime teach the estimator, each request once.
//   - A cost by time is no less than the estimate, nor than any report or charge before it.
//   - A request costs at least 1 and at most estimate.MaxCost.
//   - Begin allocates the charge; End allocates nothing, except at a flow's first usage.
//
// The package knows nothing of HTTP, Envoy, the queue or the stock.
package metering
