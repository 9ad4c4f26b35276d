package estimate

import "time"

// Unknown stands for a number that a request does not state.
const Unknown int64 = -1

// Request is the size of a request, by its own statement.
type Request struct {
	// Flow and Model are the keys of learned estimates.
	Flow, Model string
	// Tokens is the exact, counted length of the prompt in tokens, or Unknown.
	Tokens int64
	// Text is the length of the prompt's text in bytes, or Unknown if the prompt was not read.
	Text int64
	// Numbers is the number of token IDs in the prompt, besides its text.
	Numbers int64
	// Length is the length of the whole body in bytes, or Unknown.
	Length int64
	// Rest is the number of bytes of a read body, besides its text, that the model may get: in fields that only the
	// engine knows.
	Rest int64
	// Media is the number of parts of the prompt of unknown size in tokens: images, sound, files, and parts that the
	// engine fetches or keeps.
	Media int64
	// Answers is the number of answers requested: max(n, best_of) for each prompt. Less than 1 counts as 1.
	Answers int64
	// MaxOutput is the request's limit on the tokens of one answer, or Unknown. A request with limit 0 teaches no
	// length of answers.
	MaxOutput int64
	// Expected is the client's expected length of each answer in tokens, which replaces the prediction; 0 if not
	// stated.
	Expected int64
}

// answers returns the number of answers in its range.
func (r *Request) answers() int64 { return max(1, bounded(r.Answers)) }

// MostOutput returns the limit on the tokens of all answers together, or MaxTokens without one.
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
	// Held is the number of prompt tokens in Stock: Input, or more if the flow itself has taught a lower Input.
	Held        int64
	Cost, Stock Cost
}

// Estimator predicts and learns. It is not safe for concurrent use.
type Estimator struct {
	cfg   Config
	cold  ratio
	flows table
	// models are the models with an entry of some flow.
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

// Unfinished returns the cost of a request whose answers ended without usage after being produced for the given time.
// estimated is its estimate, raised if the answer has shown more use.
func (e *Estimator) Unfinished(r *Request, estimated Estimate, produced time.Duration) Cost {
	return max(estimated.Cost, e.cfg.Weights.Cost(e.UnfinishedUsage(r, estimated, produced)))
}

// UnfinishedUsage returns the least usage charged by Unfinished.
func (e *Estimator) UnfinishedUsage(r *Request, estimated Estimate, produced time.Duration) Usage {
	return Usage{
		Input:  max(estimated.Input, e.untaught(r, e.models[r.Model], r.Rest, 0)),
		Output: max(estimated.Output, min(times(r.answers(), e.chargedRate(r).over(produced)), r.MostOutput())),
	}
}

// Refused returns the cost, at least 1, of a request refused without usage after this time. It is the part of the
// estimate, which the request took of the stock, and of the prompt that the time is of a second, at most the whole. It
// includes the output that an engine produces meanwhile, since an engine may refuse a finished answer.
func (e *Estimator) Refused(r *Request, estimated Estimate, produced time.Duration) Cost {
	ms := min(max(produced.Milliseconds(), 0), 1000) // below 2^10
	held := Cost(int64(estimated.Cost) * ms / 1000)
	input := e.untaught(r, e.models[r.Model], r.Rest, 0) * ms / 1000
	output := min(times(r.answers(), e.chargedRate(r).over(produced)), r.MostOutput())
	return max(held, e.cfg.Weights.Cost(Usage{Input: input, Output: output}))
}

// Learn takes the usage of a request. after is the time from the first byte of its answer to the last, or 0 if the
// answer was not sent while it was produced.
func (e *Estimator) Learn(r *Request, u Usage, after time.Duration) {
	u = u.bounded()
	x := e.entry(r.Flow, r.Model)
	e.learnInput(r, x, u.Input)
	e.learnOutput(r, x, u.Output, after)
}

// LearnTime takes a request whose answers ended without usage, and the time for which they were produced. Their length
// is computed from the flow's own rate, or ColdRate without one. Only the flow's own predictions of answers change.
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

// entry returns the entry of a flow and model, and makes a missing one. It forgets the entries that have to leave for
// it.
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
