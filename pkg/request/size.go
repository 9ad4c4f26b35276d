package request

import (
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// readSize reads the gateway's stated cost, and the parts of the size in the headers and from Envoy.
func (q *Request) readSize(h *Headers) {
	if n, ok := h.number(q.rules.costHeader); ok && n > 0 {
		q.StatedCost = fairqueue.Cost(min(n, int64(fairqueue.MaxCost)))
	}
	s := &q.Size
	*s = estimate.Request{
		Tokens: estimate.Unknown, Text: estimate.Unknown, Length: estimate.Unknown, Answers: 1, MaxOutput: estimate.Unknown,
	}
	files := body.IsForm(q.contentType) && takesFiles(h.values[slotPath]) // files are not text
	if q.ContentLength >= 0 && !files {
		s.Length = q.ContentLength
	}
	if e := q.envoyRead; e != nil {
		s.Tokens = e.Input
		if e.Most >= 0 {
			s.MaxOutput, q.LooseLimit = e.Most, !q.PromptOnly
		}
	}
	if n, ok := h.number(q.rules.inputHeader); ok {
		s.Tokens = n
	}
	if q.PromptOnly {
		s.MaxOutput = 0
	}
}

// measure adds the body's part.
func (q *Request) measure(f *body.Fields) {
	if f.Prompt.Prompts == 0 { // it was not read
		return
	}
	s := &q.Size
	s.Text, s.Numbers, s.Rest, s.Media = f.Prompt.Text, f.Prompt.Numbers+f.Prompt.Frames, f.Rest+f.Prompt.Rest, f.Prompt.Media
	s.Answers = min(max(1, f.N, f.BestOf), estimate.MaxTokens) * f.Prompt.Prompts // at most 2^30 · 2^30
	if q.PromptOnly {
		s.Text += f.Pairs.Text
		s.Numbers += f.Pairs.Frames
		s.Media += f.Pairs.Media
		s.Rest += f.Pairs.Rest
		return
	}
	s.Rest += f.PairsRest
	if most := q.outputLimit(f); most > 0 && !q.LooseLimit {
		s.MaxOutput = most
	}
}

// outputLimit returns the body's limit on the tokens of one answer, by the fields that engines read at its path. It
// returns less than 1 without a limit, or for an ambiguous one: engines differ in the meaning of 0 and negative limits,
// and in which of two limits counts.
func (q *Request) outputLimit(f *body.Fields) int64 {
	switch q.path {
	case chatPath, batchPath:
		if f.MaxTokens == 0 || f.MaxCompletionTokens == 0 {
			return 0
		}
		return max(f.MaxTokens, f.MaxCompletionTokens)
	case completionsPath, messagesPath:
		return f.MaxTokens
	case responsesPath:
		return f.MaxOutputTokens
	default:
		return 0
	}
}
