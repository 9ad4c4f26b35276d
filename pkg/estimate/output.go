package estimate

import "time"

// maxAnswer is the longest answer distinguished from longer ones, in tokens.
const maxAnswer = 1<<20 - 1

// answerWeight is the weight of the newest answer, so that halving has something to halve.
const answerWeight = 16

// outputs are the lengths of answers, counted on a scale. The newest have the most weight.
type outputs struct {
	// cold is the remaining weight of the cold start, and total the weight of all answers.
	cold, total uint16
	buckets     [20*scaleOctave + 1]uint16 // up to maxAnswer
}

// newOutputs returns outputs with only the cold start.
func newOutputs() outputs { return outputs{cold: answerWeight, total: answerWeight} }

// output returns the predicted tokens of all answers to r. Each answer is the quantile of its flow and model,
// ColdOutput if these are unknown (x is nil), or the length that its client expects, but at least Floor. Their sum is
// capped at the limit of r.
func (e *Estimator) output(r *Request, x *entry) int64 {
	answer := e.cfg.ColdOutput
	switch {
	case r.Expected > 0:
		answer = bounded(r.Expected)
	case x != nil:
		answer = x.outputs.quantile(e.cfg.Quantile, e.cfg.ColdOutput)
	}
	return min(times(r.answers(), max(e.cfg.Floor, answer)), r.MostOutput())
}

// add counts an answer, and halves all weights when they exceed those of 2·window answers, at most 2,048.
func (o *outputs) add(answer, window int64) {
	o.buckets[onScale(min(answer, maxAnswer))] += answerWeight
	o.total += answerWeight
	for int64(o.total) > 2*window*answerWeight {
		o.cold /= 2
		o.total = o.cold
		for b := range o.buckets {
			o.buckets[b] /= 2
			o.total += o.buckets[b]
		}
	}
}

// quantile returns the least length that is not exceeded by this part of the weight, in millionths; cold is the length
// of the cold start.
func (o *outputs) quantile(part, cold int64) int64 {
	need := ceilDiv(int64(o.total)*part, 1_000_000)
	start := onScale(min(cold, maxAnswer))
	sum := int64(0)
	for b, n := range o.buckets {
		if sum += int64(n); sum >= need && n > 0 {
			return endOfScale(b)
		}
		if b == start {
			if sum += int64(o.cold); sum >= need {
				return cold
			}
		}
	}
	return maxAnswer // not reached: the sum is the total by now
}

// learnOutput takes the tokens of a request's answers, and the time in which they were produced.
func (e *Estimator) learnOutput(r *Request, x *entry, tokens int64, after time.Duration) {
	if r.MaxOutput == 0 {
		return // no answers to learn from
	}
	answer := ceilDiv(tokens, r.answers())
	x.outputs.add(answer, e.cfg.Window)
	x.model.rates.move(&x.rate, x.rate.learned(answer, after))
}
