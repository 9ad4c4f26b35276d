package flowcontrol

// seriesOfFlow is the largest number of series of one flow. Every flow has ten: two for its wait, three for its real
// and misestimated cost, and one each for its served cost, its requests waiting, in flight and ended, and its entitled
// share. The others are for its models and outcomes.
const (
	seriesOfFlow   = 20
	seriesOfEvery  = 10
	seriesOfModel  = 3 // one for each kind of tokens
	seriesOfAnyone = seriesOfFlow - seriesOfEvery
)

// furtherSeries are the series of a flow by model and by outcome. A model or outcome beyond the limit is "other", which
// always has room.
type furtherSeries struct {
	models   []modelTokens
	outcomes []rejections
}

// modelTokens are the tokens of a flow's requests for one model.
type modelTokens struct {
	model string
	Usage
}

func (t *modelTokens) add(u Usage) {
	t.Input += u.Input
	t.Output += u.Output
	t.Cached += u.Cached
}

// rejections are a flow's requests with one outcome.
type rejections struct {
	outcome Outcome // NumOutcomes: any outcome without a series of its own
	n       uint64
}

// NumOutcomes stands for "other".
func (r *rejections) label() string {
	if r.outcome == NumOutcomes {
		return overflow
	}
	return r.outcome.String()
}

// tokens returns the tokens of a model.
func (f *furtherSeries) tokens(model string) *modelTokens {
	if !presentable(model) {
		model = overflow
	}
	if t := f.ofModel(model); t != nil {
		return t
	}
	if model != overflow && !f.hasRoom(seriesOfModel) {
		return f.tokens(overflow)
	}
	f.models = append(f.models, modelTokens{model: model})
	return &f.models[len(f.models)-1]
}

// rejections returns the number of requests with an outcome.
func (f *furtherSeries) rejections(o Outcome) *uint64 {
	if r := f.withOutcome(o); r != nil {
		return &r.n
	}
	if o != NumOutcomes && !f.hasRoom(1) {
		return f.rejections(NumOutcomes)
	}
	f.outcomes = append(f.outcomes, rejections{outcome: o})
	return &f.outcomes[len(f.outcomes)-1].n
}

// hasRoom reports whether there is room for n more series plus those of other models and other outcomes.
func (f *furtherSeries) hasRoom(n int) bool {
	n += len(f.models)*seriesOfModel + len(f.outcomes)
	if f.ofModel(overflow) == nil {
		n += seriesOfModel
	}
	if f.withOutcome(NumOutcomes) == nil {
		n++
	}
	return n <= seriesOfAnyone
}

func (f *furtherSeries) ofModel(model string) *modelTokens {
	for i := range f.models {
		if f.models[i].model == model {
			return &f.models[i]
		}
	}
	return nil
}

func (f *furtherSeries) withOutcome(o Outcome) *rejections {
	for i := range f.outcomes {
		if f.outcomes[i].outcome == o {
			return &f.outcomes[i]
		}
	}
	return nil
}
