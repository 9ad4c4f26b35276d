package extproc

import (
	"fmt"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// Length is a request's length in an engine's context, in tokens.
type Length struct {
	// Least is the certain length of its prompt. Likely is its estimated prompt plus the longest answer that it allows.
	// Both are 0 if unknown.
	Least, Likely int64
}

// mostBytesPerToken is above any tokenizer's average length of tokens in text: runs of blanks are the longest tokens.
const mostBytesPerToken = 32

// lengthOf returns the length of a request. With several prompts or answers, the longest is unknown.
func lengthOf(q *request.Request) (l Length) {
	s := &q.Size
	switch {
	case q.PassesOn || s.Answers > 1:
		return Length{}
	case s.Tokens >= 0:
		l = Length{s.Tokens, s.Tokens}
	case s.Text >= 0:
		l = Length{s.Numbers + s.Text/mostBytesPerToken, s.Numbers + s.Text/body.BytesPerToken}
	default:
		return Length{}
	}
	if s.MaxOutput > 0 && !q.LooseLimit && !q.PromptOnly {
		l.Likely += s.MaxOutput
	}
	return l
}

// TooLongError is the error for a prompt too long for every engine.
type TooLongError struct {
	// Least is the certain length of the prompt, and Most the engines' limit, in tokens.
	Least, Most int64
}

// Error returns the message for the client.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("The prompt has %d tokens or more, and no model server takes more than %d.", e.Least, e.Most)
}

// Unwrap returns the sentinel of the outcome.
func (e *TooLongError) Unwrap() error { return flowcontrol.ErrBadRequest }
