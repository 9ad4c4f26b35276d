package estimate

import "time"

// Unknown is a number that a request does not state.
const Unknown int64 = -1

// Request is the size of a request, by its own statement.
type Request struct {
	// Flow and Model are the keys of learned estimates.
	Flow, Model string
	// Tokens is the exact, counted length of the prompt in tokens, or Unknown.
	Tokens int64
	// Text is the length of the prompt's text in bytes, or Unknown if the prompt was not read.
	Text int64
	// Numbers is the number of tokens that the prompt names by number, besides its text.
	Numbers int64
	// Length is the length of the whole body in bytes, or Unknown.
	Length int64
	// Rest is the number of bytes of a body that was read that may be shown to the model besides its text: in fields
	// that only the engine knows.
	Rest int64
	// Media is the number of parts of the prompt whose size in tokens the body does not tell: images, sound, files, and
	// what the engine fetches or keeps.
	Media int64
	// Answers is the number of answers that the request asks for: max(n, best_of) for each of its prompts. Less than
	// 1 counts as 1.
	Answers int64
	// MaxOutput is the most tokens of one answer that the request allows, or Unknown. A request that allows none says
	// nothing of how long answers are.
	MaxOutput int64
	// Expected is the length in tokens that each answer is expected to have by the client, which counts instead of the
	// prediction; 0 if the client says nothing.
	Expected int64
}

// answers returns the number of answers in its range.
func (r *Request) answers() int64 { return max(1, bounded(r.Answers)) }

// MostOutput returns the most tokens that the answers to the request may have together, or MaxTokens if it does not say.
func (r *Request) MostOutput() int64 {
	if r.MaxOutput < 0 {
		return MaxTokens
	}
	return times(r.answers(), bounded(r.MaxOutput))
}

// Estimate is the predicted usage of a request, in tokens: its Cost by Config.Weights, and Stock, its part of the
// stock, by Config.StockWeights.
type Estimate struct {
	Input, Output int64
	// Held is the number of tokens of the prompt that Stock counts: Input, or more where the flow itself has taught a
	// lower Input.
	Held        int64
	Cost, Stock Cost
}

// Estimator predicts and learns. It is not safe for concurrent use.
type Estimator struct {
	cfg   Config
	cold  ratio
	flows table
	// models are the models that some flow has an entry for.
	models map[string]*model
}

// New returns an Estimator that has learned nothing. It panics if the configuration is invalid.
func New(cfg Config) *Estimator {
	e := &Estimator{flows: newTable(), models: make(map[string]*model)}
	e.Configure(cfg)
	return e
}

// Configure changes the configuration. Learned values remain. It panics if the configuration is invalid.
func (e *Estimator) Configure(cfg Config) {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	e.cfg, e.cold = cfg, ratio(cfg.ColdRatio*int64(ratioOne)/1_000_000)
	for _, m := range e.models {
		m.ratios.configure(e.cold)
	}
}

// Estimate predicts the usage of a request.
func (e *Estimator) Estimate(r *Request) Estimate {
	x, m := e.flows.find(r.Flow, r.Model), e.models[r.Model]
	est := Estimate{Input: e.input(r, x, m), Output: e.output(r, x)}
	est.Held = max(est.Input, e.untaught(r, m, 0, coldOverhead))
	est.Cost = e.cfg.Weights.Cost(Usage{Input: est.Input, Output: est.Output})
	est.Stock = e.cfg.StockWeights.Cost(Usage{Input: est.Held, Output: est.Output})
	return est
}

// Unfinished returns the cost of a request whose answers have ended without usage, and were produced for the given
// time. estimated is its estimate, or more where the answer has shown that it used more.
func (e *Estimator) Unfinished(r *Request, estimated Estimate, produced time.Duration) Cost {
	return max(estimated.Cost, e.cfg.Weights.Cost(e.UnfinishedUsage(r, estimated, produced)))
}

// UnfinishedUsage returns the usage that Unfinished charges, at least.
func (e *Estimator) UnfinishedUsage(r *Request, estimated Estimate, produced time.Duration) Usage {
	return Usage{
		Input:  max(estimated.Input, e.untaught(r, e.models[r.Model], r.Rest, 0)),
		Output: max(estimated.Output, min(times(r.answers(), e.chargedRate(r).over(produced)), r.MostOutput())),
	}
}

// Refused returns the cost of a request that was refused without usage, so long after it was sent: of the estimate, which
// it took of the stock, and of the prompt, that part which the time is of a second, at most the whole; and the output that
// an engine makes meanwhile, which may refuse an answer that it has made. At least 1.
func (e *Estimator) Refused(r *Request, estimated Estimate, produced time.Duration) Cost {
	ms := min(max(produced.Milliseconds(), 0), 1000) // below 2^10
	held := Cost(int64(estimated.Cost) * ms / 1000)
	input := e.untaught(r, e.models[r.Model], r.Rest, 0) * ms / 1000
	output := min(times(r.answers(), e.chargedRate(r).over(produced)), r.MostOutput())
	return max(held, e.cfg.Weights.Cost(Usage{Input: input, Output: output}))
}

// Learn takes the usage of a request. after is the time from the first byte of its answer to the last, or 0 if it does
// not say how fast the answer was produced, because it did not come as it was produced.
func (e *Estimator) Learn(r *Request, u Usage, after time.Duration) {
	u = u.bounded()
	x := e.entry(r.Flow, r.Model)
	e.learnInput(r, x, u.Input)
	e.learnOutput(r, x, u.Output, after)
}

// LearnTime takes a request whose answers have ended without usage, and the time for which they were produced: they
// count as long as the flow's own rate says, or ColdRate if it has none. Only the flow's own predictions of answers
// change.
func (e *Estimator) LearnTime(r *Request, produced time.Duration) {
	if r.MaxOutput == 0 {
		return
	}
	x := e.entry(r.Flow, r.Model)
	answer := e.learnedRate(x).over(produced)
	if r.MaxOutput >= 0 {
		answer = min(answer, bounded(r.MaxOutput))
	}
	x.outputs.add(answer, e.cfg.Window)
}

// entry returns the entry of a flow and model, which it makes if there is none. The entry that has to leave for it is
// forgotten.
func (e *Estimator) entry(flow, name string) *entry {
	x, left := e.flows.take(flow, name)
	for _, old := range left {
		m := old.model
		m.ratios.remove(old.ratio)
		m.rates.count(old.rate, -1)
		if m.entries--; m.entries == 0 {
			delete(e.models, m.name)
		}
	}
	if x.model == nil {
		m := e.models[name]
		if m == nil {
			m = &model{name: name}
			m.ratios.configure(e.cold)
			e.models[name] = m
		}
		m.entries++
		x.model = m
	}
	return x
}

// model is the state of a model over all flows.
type model struct {
	name    string
	entries int // that point here
	ratios  ratios
	rates   rates
}
