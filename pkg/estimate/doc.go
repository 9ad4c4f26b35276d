// Package estimate predicts the cost of a request in tokens before it runs, and learns from the usage of earlier
// requests. It is a pure state machine: no goroutine, lock, clock or random source; the same calls always give the same
// results.
//
// # Cost
//
// The cost of a request is its usage in weighted tokens, rounded up,
//
//	cost = ceil(input·(uncached tokens of the prompt) + cachedInput·(cached ones) + output·(tokens of all answers))
//
// clamped to 1 to MaxCost. Weights are decimals in millionths. An estimate takes the whole prompt as uncached.
//
// A request's part of the stock, in the engine's memory, is the same sum with other weights: producing a token costs
// more than reading one, but both take the same memory. In the stock a prompt counts at least as much as a new flow's,
// so a flow cannot teach Weir that its own prompts are small (Held, below).
//
// # Input
//
// An exact count wins. Otherwise the estimate is the bytes of the prompt's text divided by a ratio, in bytes per token,
// plus the prompt's token IDs. For an unread prompt, the text is taken as the content length minus the overhead.
//
// The ratio of a flow with a model is learned from usage, as Σ bytes / Σ tokens over its last requests. Both sums are
// halved when the tokens exceed 65,536, and each request's own ratio is first clamped to 1 to 8. The model's prior
// counts as another 512 tokens:
//
//	ratio = (Σ bytes + 512·prior) / (Σ tokens + 512)
//
// The prior is the median of the model's flows, held near ColdRatio: it may differ by a factor of 1.09 for each flow
// that would have to change to bring the median back to ColdRatio:
//
//	prior = cold · min over k of 1.09^k · m(k)/cold     if the median is above cold, and its mirror image if below,
//
// where m(k) is the median nearest to cold that k flows could produce by changing. ColdRatio votes too: once, or twice
// if that makes the number of votes odd. So a single flow moves the prior by at most 9 %, and the estimate of another
// flow by at most 10 %, while a handful of flows that agree are believed entirely. A plain median has no such bound:
// with one flow on either side, a third moves it from end to end.
//
// The overhead is the bytes of a body besides its text, learned for each flow and model. It is a moving average, by
// 1/16 per request, of content length − bytes of text, or of content length − ratio·tokens if the text was not read. It
// starts at 256 and stays within 0 to 4,096.
//
// # The untaught prompt
//
// Where a low estimate is final or decides about room, a flow could gain by teaching Weir a low one, for instance with
// padding that never shows in the usage. There the prompt counts at least
//
//	untaught = numbers + 2,000·media + (text + rest) / prior
//
// where numbers are the prompt's token IDs, media are parts of unknown size (images, files, earlier turns kept by the
// engine), rest is the bytes of body fields that only the engine knows, and prior is the model's ratio, which one flow
// moves by at most 9 %. In the stock rest is 0: engines ignore unknown fields, and padding would take the room of other
// flows. An unread body counts as text; a body of unknown length counts as one part of media. An exact count wins here
// too.
//
// # Output
//
// The predicted length of a flow's next answer from a model is the Quantile of its earlier answers. Lengths are counted
// in buckets of 1/8 octave; the upper end of the bucket is taken, at most 1/8 too much. All counts are halved when they
// exceed 2·Window answers, so the last Window answers have between half and all of the weight. ColdOutput counts as one
// answer from the beginning: with a quantile of 0.9 the prediction is ColdOutput until nine shorter answers are known.
// The prediction is at least Floor. A request that allows no output has none, and is not learned from. The predicted
// output of a request is
//
//	output = answers · min(prediction, most per answer),   answers = max(n, best_of) · prompts.
//
// A client's expected length (Request.Expected) replaces the prediction, but not below Floor.
//
// # Answers that end without usage
//
// Leaving early, or hiding a prompt from the estimate, must not pay. Without usage the prompt counts as the larger of
// the estimate and untaught. The output counts as the larger of the estimate and rate × time, capped at the most that
// the request allows, where time is how long the answer was produced. The rate, in tokens per second and answer, is the
// larger of the flow's own (a moving average by 1/8) and the median of the model's flows, or ColdRate without any. So
// the cost is never below the estimate: the prompt and the tokens sent stay charged.
//
// An engine's refusal (4xx, 503) does not tell how much work came before it. It costs the work that may have been done,
// and the room that the request took:
//
//	cost = max(1, estimate · s, weights · (untaught · s, min(rate · time, most that it allows))),   s = min(1, time / 1 s)
//
// The length of such an answer, by time, is learned as one of the flow's outputs; otherwise a flow without usage would
// be estimated at ColdOutput for ever. Learning uses the flow's own rate, or ColdRate, and never the median: one flow
// can move the median of a few flows, and a bucket of lengths is up to 1/8 wide, so a small change could move the
// estimates of other flows by more than 10 %. Since the estimate is a quantile, such a flow is charged about its
// Quantile instead of its mean: 10 % more for answers of one length, 2.5 times as much for exponentially distributed
// lengths (TestChargedByTime).
//
// # Memory
//
// Only an answer makes an entry, so requests for unknown models take no memory. There are at most MaxFlows flows with
// MaxModels models each. A new flow replaces the flow longest without usage; a flow's new model replaces the flow's own
// model longest without usage. So one flow, with any number of models, replaces at most one other flow, which is then
// estimated like a new one.
//
// # Invariants
//
//   - 1 <= cost <= MaxCost, and no sum or product overflows for any input.
//   - bytes/8 <= input <= bytes, rounded up, for a prompt of text only.
//   - output <= answers · most per answer.
//   - A refusal costs at most as much as an answer of the same time that ends without usage; an immediate refusal costs
//     1.
//   - A flow can lower the stock of its own requests, and their cost without usage, by at most 9 %, as it can move the
//     prior.
//   - If two runs differ only in one flow's usage, or the time of its answers, the estimates of any other flow differ
//     by at most 10 %, or one token.
//   - A higher weight, count, or output never makes the cost lower.
//
// The package knows nothing of HTTP, JSON, Envoy, or the use of the cost.
package estimate
