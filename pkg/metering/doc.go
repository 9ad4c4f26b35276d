// Package metering decides the charge of each request in tokens, and when it applies. It owns the charges and the
// estimates learned from usage. It builds on pkg/estimate, which predicts, and pkg/usage, which finds the usage
// in responses. It is pure except for the lock of Meter: no goroutine, clock or random source, and no dependence on map
// order.
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
// Usage from Envoy takes precedence over usage that Weir has read itself. The report of a broken answer is only a lower
// limit of its usage, but its prompt figures are exact.
//
// A charge with a fixed prompt (Charge.Fix) costs the uncached tokens at its arrival plus the answer: as reported
// (ByUsage), as estimated or seen (ByTime), or none.
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
