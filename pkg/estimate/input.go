package estimate

// ratio is a length of tokens in bytes, in fixed point: ratioOne is one byte per token. Its range is minRatio to
// maxRatio; 0 is none.
type ratio int64

const (
	ratioOne ratio = 1024
	minRatio       = 1 * ratioOne
	maxRatio       = 8 * ratioOne
)

const (
	// priorTokens is the weight of a model's prior, in tokens of a flow's own.
	priorTokens = 512
	// rememberedTokens is the number of tokens at which the sums of a flow are halved.
	rememberedTokens = 1 << 16
	// coldOverhead and maxOverhead are the first and the largest overhead, in bytes.
	coldOverhead = 256
	maxOverhead  = 4096
	// mediumTokens is the size of a part of unknown size in untaught: an image of 1.5 megapixels at 28 × 28 pixels a
	// token (Qwen2.5-VL), and more than any image for Llama 3.2 Vision (1,601) or Claude (1,600).
	mediumTokens = 2000
)

// input is an entry's learned state about prompts.
type input struct {
	// bytes and tokens are sums over requests; tokens is at most 2·rememberedTokens + MaxTokens.
	bytes, tokens int64
	// ratio is the ratio of the sums, as counted in the model; 0 without any.
	ratio ratio
	// overhead is in 1/16 of a byte, so that the average moves by 1/16; it is overheadKnown once learned.
	overhead      int64
	overheadKnown bool
}

// shrunk returns the ratio to estimate with.
func (in *input) shrunk(prior ratio) ratio {
	return (ratio(in.bytes)*ratioOne + priorTokens*prior) / ratio(in.tokens+priorTokens)
}

func (in *input) overheadBytes() int64 {
	if !in.overheadKnown {
		return coldOverhead
	}
	return in.overhead / 16
}

// input returns the estimated number of prompt tokens of r. x and m are nil if unknown.
func (e *Estimator) input(r *Request, x *entry, m *model) int64 {
	if r.Tokens >= 0 {
		return bounded(r.Tokens)
	}
	text, tokens := bounded(r.Text), bounded(r.Numbers)
	if r.Text < 0 {
		text = bounded(bounded(r.Length) - e.overhead(x))
		if r.Length > 0 {
			text = max(1, text)
		}
	}
	return bounded(tokens + ceilDiv(text*int64(ratioOne), int64(e.ratio(x, m))))
}

// untaught returns the number of prompt tokens of r without anything that its flow has taught: its text and rest, minus
// the overhead of an unread body, by the model's prior, plus mediumTokens for each part of unknown size. m is nil for
// an unknown model.
func (e *Estimator) untaught(r *Request, m *model, rest, overhead int64) int64 {
	if r.Tokens >= 0 {
		return bounded(r.Tokens)
	}
	text, media := bounded(bounded(r.Text)+bounded(rest)), bounded(r.Media)
	switch {
	case r.Text >= 0:
	case r.Length >= 0:
		text = bounded(bounded(r.Length) - overhead)
	default:
		text, media = 0, max(1, media)
	}
	return bounded(bounded(r.Numbers) + times(media, mediumTokens) + ceilDiv(text*int64(ratioOne), int64(e.ratio(nil, m))))
}

// ratio returns the ratio for an entry and a model; both may be nil.
func (e *Estimator) ratio(x *entry, m *model) ratio {
	prior := e.cold
	if m != nil {
		prior = m.ratios.prior
	}
	if x == nil {
		return prior
	}
	return x.shrunk(prior)
}

func (e *Estimator) overhead(x *entry) int64 {
	if x == nil {
		return coldOverhead
	}
	return x.overheadBytes()
}

// learnInput takes the length of a prompt in tokens.
func (e *Estimator) learnInput(r *Request, x *entry, tokens int64) {
	tokens -= bounded(r.Numbers)
	if tokens <= 0 || r.Text < 0 && r.Length < 0 {
		return
	}
	text := bounded(r.Text)
	if r.Text < 0 {
		text = bounded(bounded(r.Length) - x.overheadBytes())
	}
	if r.Length >= 0 {
		sample := bounded(r.Length) - text
		if r.Text < 0 {
			sample = bounded(r.Length) - tokens*int64(e.ratio(x, x.model))/int64(ratioOne)
		}
		x.learnOverhead(min(max(sample, 0), maxOverhead))
	}
	x.bytes += min(max(text, tokens), 8*tokens)
	x.tokens += tokens
	for x.tokens > rememberedTokens {
		x.bytes, x.tokens = (x.bytes+1)/2, x.tokens/2
	}
	own := min(max(ratio(x.bytes)*ratioOne/ratio(max(1, x.tokens)), minRatio), maxRatio)
	x.model.ratios.move(&x.ratio, own)
}

func (in *input) learnOverhead(sample int64) {
	if !in.overheadKnown {
		in.overhead, in.overheadKnown = coldOverhead*16, true
	}
	in.overhead += sample - in.overhead/16
}
