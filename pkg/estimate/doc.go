// Package estimate predicts the cost of a request in tokens, before it runs, and learns from the usage of requests. It
// is a pure state machine: no goroutine, lock, clock or random source; the same calls always give the same results.
//
// # Cost
//
// The cost of a request is its usage in weighted tokens, rounded up,
//
//	cost = ceil(input·(uncached tokens of the prompt) + cachedInput·(cached ones) + output·(tokens of all answers))
//
// and from 1 to MaxCost. Weights are decimals in millionths. An estimate takes the whole prompt as uncached.
//
// A request's part of the stock, the memory of the engine, is the same sum with weights of its own: a token of an
// answer is dearer to produce than one of a prompt to read, and both take as much memory. There a prompt counts no
// less than that of a new flow, so a flow cannot teach Weir that its own prompts are small (Held, below).
//
// # Input
//
// An exact count wins. Otherwise the bytes of the prompt's text are divided by a ratio, in bytes per token, and the
// tokens that the prompt names by number are added. If the prompt was not read, the content length less the overhead
// stands for its text.
//
// The ratio of a flow with a model is learned from usage, as Σ bytes / Σ tokens over its last requests (both sums are
// halved when the tokens exceed 65,536; a request's own ratio is first clamped to 1 to 8) and shrunk to the model's
// prior as if that were 512 tokens more:
//
//	ratio = (Σ bytes + 512·prior) / (Σ tokens + 512)
//
// The prior is the median of all flows of the model, but no further from ColdRatio than a factor of 1.09 for each
// flow that would have to change its mind to bring the median back there:
//
//	prior = cold · min over k of 1.09^k · m(k)/cold     if the median is above cold, and its mirror image if below,
//
// where m(k) is the median that lies nearest to cold among all that k flows could make of it, and cold votes too
// (once, or twice if that makes the number of votes odd). So one flow, whatever it does, moves the prior by at most 9
// % and with it the estimate of another flow by at most 10 %, while a handful of flows that agree are believed
// entirely. A plain median has no such bound: with one flow on either side, a third moves it from end to end.
//
// The overhead, the bytes of a body that are not text, belongs to a flow and model alone: a moving average, by 1/16
// per request, of content length − bytes of text, or of content length − ratio·tokens if the text was not read; from
// 0 to 4,096, and 256 at first.
//
// # The untaught prompt
//
// Where a low estimate is final, or makes room, a flow could gain by teaching one, for instance by padding that the
// usage shows to be no prompt. The prompt then counts no less than
//
//	untaught = numbers + 2,000·media + (text + rest) / prior
//
// where media are parts of unknown size (images, files, earlier turns that the engine keeps), rest the fields of the body
// that only the engine knows (none of them in the stock: engines ignore unknown fields, and padding would take others' room),
// and prior the ratio of the model, which one flow moves by 9 % at most. The bytes of an unread body are all text, and one of
// unknown length is one of media. An exact count wins here too.
//
// # Output
//
// Each answer of a flow from a model is predicted to be as long as the Quantile of the answers before it: they are
// counted in buckets of 1/8 octave, whose upper end is taken (at most 1/8 too much), and all counts are halved when
// they exceed those of 2·Window answers. So the last Window answers count between half and all. ColdOutput counts as
// one answer, from the beginning; with a quantile of 0.9 the prediction is ColdOutput until nine shorter answers are
// known. The prediction is at least Floor. A request that allows no output has none, and teaches nothing of others. A
// request is predicted to produce
//
//	output = answers · min(prediction, most per answer),   answers = max(n, best_of) · prompts.
//
// The length that a client expects (Request.Expected) takes the place of the prediction, from Floor on.
//
// # Answers that end without usage
//
// Leaving early must not pay, nor must a prompt that no estimate shows. The prompt then counts as the larger of the
// estimate and untaught, and the output as the larger of the estimate and the time for which the answer was produced
// times the rate, in tokens per second and answer, capped by what the request allows. The rate is the larger of the
// flow's own (a moving average by 1/8) and the median of the model's flows; ColdRate if there is none. So the cost is
// never less than the estimate: prompt and tokens that were sent stay charged.
//
// A refusal (4xx, 503) does not tell whether the engine did anything before it. It costs the work that may have been
// done, and the room that the request took:
//
//	cost = max(1, estimate · s, weights · (untaught · s, min(rate · time, most that it allows))),   s = min(1, time / 1 s)
//
// Time also tells how long such an answer was, so it counts among the flow's outputs; otherwise a flow that never has
// usage would be estimated at ColdOutput for ever. There it is the flow's own rate that counts, or ColdRate: the median of
// a few flows is whatever one of them likes, and however it were held back, a bucket of lengths is up to 1/8 wide, so the
// least change could move an estimate by more than 10 %. Since the estimate is a quantile, the charge of such a flow is
// about its Quantile, not its mean: 10 % more for answers that are alike, 2.5 times as much for lengths that are
// exponentially distributed (TestChargedByTime).
//
// # Memory
//
// Only an answer makes an entry, never a request, so a name that no engine serves takes no memory. There are at most
// MaxFlows flows with MaxModels models each. A new flow takes the place of the one that has gone longest without
// usage, a flow's new model that of its own. So one flow, under however many models, takes the place of one other at
// most, which then is estimated as if it were new.
//
// # Invariants
//
//   - 1 <= cost <= MaxCost, and no sum or product overflows, whatever the numbers given.
//   - bytes/8 <= input <= bytes, rounded up, for a prompt that is text alone.
//   - output <= answers · most per answer.
//   - A refusal costs no more than an answer of the same time that ends without usage, and at once 1.
//   - A flow lowers the stock that a request of its own takes, and its cost without usage, by no more than the 9 % by which
//     it moves the prior.
//   - If two runs differ only in what one flow has used, or how long its answers took, the estimates of any other flow
//     differ by at most 10 %, or a token.
//   - A higher weight, count, or output never makes the cost lower.
//
// The package knows nothing of HTTP, JSON, Envoy, or of the users of the cost.
package estimate
